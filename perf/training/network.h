// A multi-layer perceptron, forward and backward with BLAS, on made-up data: regression of a fixed random function.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace plait::perf::training {

class Network {
 public:
  // `widths`: of the input, of each hidden layer and of the output. The same parameters for the same seed.
  Network(const std::vector<int>& widths, int batch, unsigned seed);

  std::size_t layers() const { return layers_.size(); }
  // Weights and biases of a layer are one array, and so is its gradient.
  std::vector<float>& gradient(std::size_t layer) { return layers_[layer].gradient; }

  // A new batch, the same for the same number.
  void take_batch(unsigned number);
  void forward();
  // Half the mean of the squared errors, over the batch.
  double loss() const;
  // Layer by layer, the last one first; `ready` is called once a layer's gradient is complete.
  void backward(const std::function<void(std::size_t layer)>& ready);
  // parameters -= rate * gradient
  void update(float rate);

 private:
  struct Layer {
    int inputs, outputs;
    std::vector<float> parameters, gradient;  // weights, a row an output; then the biases
    std::vector<float> activation, error;     // a row a sample
  };

  void forward(std::size_t index);
  void backward(std::size_t index);
  const std::vector<float>& input_of(std::size_t index) const {
    return index == 0 ? input_ : layers_[index - 1].activation;
  }

  int batch_;
  std::vector<float> input_, wanted_;
  std::vector<Layer> layers_;
};

}  // namespace plait::perf::training
