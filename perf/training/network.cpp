#include "perf/training/network.h"

#include <cblas.h>

#include <cmath>
#include <random>

namespace plait::perf::training {
namespace {

std::size_t product(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

// The same numbers with every standard library, unlike those of std::normal_distribution.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : engine_(seed) {}
  float next(float scale) { return (static_cast<float>(engine_() >> 8) / 8388608.0f - 1.0f) * scale; }

 private:
  std::mt19937 engine_;
};

}  // namespace

Network::Network(const std::vector<int>& widths, int batch, unsigned seed) : batch_(batch) {
  Numbers numbers(seed);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Layer layer{
        .inputs = widths[i], .outputs = widths[i + 1], .parameters = {}, .gradient = {}, .activation = {}, .error = {}};
    const std::size_t weights = product(layer.inputs, layer.outputs);
    const float scale = std::sqrt(3.0f / static_cast<float>(layer.inputs));
    for (std::size_t k = 0; k < weights; ++k) layer.parameters.push_back(numbers.next(scale));
    layer.parameters.resize(weights + static_cast<std::size_t>(layer.outputs));
    layer.gradient.resize(layer.parameters.size());
    layer.activation.resize(product(batch, layer.outputs));
    layer.error.resize(layer.activation.size());
    layers_.push_back(std::move(layer));
  }
  input_.resize(product(batch, widths.front()));
  wanted_.resize(product(batch, widths.back()));
}

void Network::take_batch(unsigned number) {
  Numbers numbers(number * 2654435761u + 1);
  for (float& value : input_) value = numbers.next(1);
  const std::size_t inputs = input_.size() / static_cast<std::size_t>(batch_);
  const std::size_t outputs = wanted_.size() / static_cast<std::size_t>(batch_);
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch_); ++sample)
    for (std::size_t k = 0; k < outputs; ++k)
      wanted_[sample * outputs + k] = std::sin(3 * input_[sample * inputs + k % inputs]);
}

void Network::forward(std::size_t index) {
  Layer& layer = layers_[index];
  const float* biases = layer.parameters.data() + product(layer.inputs, layer.outputs);
  for (int sample = 0; sample < batch_; ++sample)
    for (int k = 0; k < layer.outputs; ++k)
      layer.activation[product(sample, layer.outputs) + static_cast<std::size_t>(k)] = biases[k];
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, batch_, layer.outputs, layer.inputs, 1, input_of(index).data(),
              layer.inputs, layer.parameters.data(), layer.inputs, 1, layer.activation.data(), layer.outputs);
  if (index + 1 == layers_.size()) return;
  for (float& value : layer.activation) value = value > 0 ? value : 0;
}

void Network::forward() {
  for (std::size_t index = 0; index < layers_.size(); ++index) forward(index);
}

double Network::loss() const {
  double sum = 0;
  const std::vector<float>& output = layers_.back().activation;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double error = output[i] - wanted_[i];
    sum += error * error;
  }
  return sum / 2 / batch_;
}

void Network::backward(std::size_t index) {
  Layer& layer = layers_[index];
  const float mean = 1.0f / static_cast<float>(batch_);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, layer.outputs, layer.inputs, batch_, mean, layer.error.data(),
              layer.outputs, input_of(index).data(), layer.inputs, 0, layer.gradient.data(), layer.inputs);
  float* biases = layer.gradient.data() + product(layer.inputs, layer.outputs);
  for (int k = 0; k < layer.outputs; ++k) {
    biases[k] = 0;
    for (int sample = 0; sample < batch_; ++sample)
      biases[k] += layer.error[product(sample, layer.outputs) + static_cast<std::size_t>(k)];
    biases[k] *= mean;
  }
}

void Network::backward(const std::function<void(std::size_t layer)>& ready) {
  Layer& last = layers_.back();
  for (std::size_t i = 0; i < last.error.size(); ++i) last.error[i] = last.activation[i] - wanted_[i];
  for (std::size_t index = layers_.size(); index-- > 0;) {
    backward(index);
    ready(index);
    if (index == 0) break;
    const Layer& layer = layers_[index];
    Layer& before = layers_[index - 1];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch_, layer.inputs, layer.outputs, 1, layer.error.data(),
                layer.outputs, layer.parameters.data(), layer.inputs, 0, before.error.data(), layer.inputs);
    for (std::size_t i = 0; i < before.error.size(); ++i)
      if (before.activation[i] <= 0) before.error[i] = 0;
  }
}

void Network::update(float rate) {
  for (Layer& layer : layers_)
    for (std::size_t i = 0; i < layer.parameters.size(); ++i) layer.parameters[i] -= rate * layer.gradient[i];
}

}  // namespace plait::perf::training
