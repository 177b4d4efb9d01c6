/* libucc_tl_plait.so, a transport layer of UCC: its variables, its library and context objects.
 *
 * The order of a process's life: the component is loaded and its variables are registered, UCC reads them, a library
 * object is made, then a context, whose address carries what the ranks tell each other (the settings), so that they
 * agree without an exchange of their own; then teams. UCC looks for the symbol ucc_tl_plait. */
#include "plugin/ucc/component.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ucc_context.h"

extern __attribute__((visibility("default"))) ucc_tl_iface_t ucc_tl_plait;

/* ---- Variables ---- */

enum { most_variables = 64 };

/* UCC's own of a transport layer, then ours, then an end. */
static ucc_config_field_t lib_fields[most_variables + 2];
static size_t variables = 0;

struct context_config {
  ucc_tl_context_config_t super;
};
static ucc_config_field_t context_fields[] = {
    {"", "", NULL, offsetof(struct context_config, super), UCC_CONFIG_TYPE_TABLE(ucc_tl_context_config_table)}, {NULL}};

static ucc_config_field_t field_of(size_t index) {
  const struct plait_ucc_variable variable = plait_ucc_variable_at(index);
  const ucc_config_field_t field = {variable.name, variable.initial, variable.help,
                                    offsetof(struct plait_lib_config, values) + index * sizeof(char*),
                                    UCC_CONFIG_TYPE_STRING};
  return field;
}

/* When the component is loaded: UCC reads its tables afterwards. */
__attribute__((constructor)) static void fill_fields(void) {
  plait_ucc_loaded();
  const ucc_config_field_t others = {"", "", NULL, offsetof(struct plait_lib_config, super),
                                     UCC_CONFIG_TYPE_TABLE(ucc_tl_lib_config_table)};
  lib_fields[0] = others;
  const size_t count = plait_ucc_variable_count();
  variables = count < most_variables ? count : most_variables;
  for (size_t i = 0; i < variables; ++i) lib_fields[i + 1] = field_of(i);
}

/* ---- The library ---- */

static void free_values(char** values) {
  for (size_t i = 0; values != NULL && i < variables; ++i) free(values[i]);
  free(values);
}

static char** copy_values(const struct plait_lib_config* config) {
  char** values = calloc(variables + 1, sizeof *values);
  for (size_t i = 0; values != NULL && i < variables; ++i)
    if (config->values[i] != NULL) values[i] = strdup(config->values[i]);
  return values;
}

static ucc_status_t lib_init(const ucc_base_lib_params_t* params, const ucc_base_config_t* config,
                             ucc_base_lib_t** made) {
  (void)params;
  const struct plait_lib_config* ours = (const struct plait_lib_config*)config;
  struct plait_lib* lib = calloc(1, sizeof *lib);
  if (lib == NULL) return UCC_ERR_NO_MEMORY;
  ucc_base_lib_t* base = &lib->super.super;
  base->log_component = ours->super.super.log_component;
  snprintf(base->log_component.name, sizeof base->log_component.name, "%s", ucc_tl_plait.tl_lib_config.name);
  base->use_tuning = ours->super.super.use_tuning;
  const unsigned long wanted = ours->super.super.min_team_size;
  base->min_team_size = wanted > plait_ucc_fewest_ranks && wanted < UINT32_MAX ? wanted : plait_ucc_fewest_ranks;
  lib->super.iface = &ucc_tl_plait;
  lib->values = copy_values(ours);
  *made = base;
  return UCC_OK;
}

static void lib_finalize(ucc_base_lib_t* base) {
  struct plait_lib* lib = (struct plait_lib*)base;
  free_values(lib->values);
  free(lib);
}

static ucc_status_t lib_get_attr(const ucc_base_lib_t* lib, ucc_base_lib_attr_t* attr) {
  attr->attr.thread_mode = UCC_THREAD_MULTIPLE;
  attr->attr.coll_types = PLAIT_UCC_COLLECTIVES;
  attr->flags = 0;
  if (attr->mask & UCC_BASE_LIB_ATTR_FIELD_MIN_TEAM_SIZE)
    attr->min_team_size = lib != NULL ? (ucc_rank_t)lib->min_team_size : plait_ucc_fewest_ranks;
  if (attr->mask & UCC_BASE_LIB_ATTR_FIELD_MAX_TEAM_SIZE) attr->max_team_size = UCC_RANK_MAX;
  return UCC_OK;
}

static ucc_status_t lib_get_properties(ucc_base_lib_properties_t* properties) {
  properties->default_team_size = properties->min_team_size = plait_ucc_fewest_ranks;
  properties->max_team_size = UCC_RANK_MAX;
  return UCC_OK;
}

/* ---- A context ---- */

static bool has_oob(const ucc_context_params_t* params) {
  return (params->mask & UCC_CONTEXT_PARAM_FIELD_OOB) != 0 && params->oob.n_oob_eps > 1;
}

/* By UCC's interface for programs: where its own parameters have it differs between versions, and who looks at the
 * wrong place finds some other small number there. */
static bool is_concurrent(const ucc_base_context_params_t* params) {
  ucc_lib_attr_t attr = {.mask = UCC_LIB_ATTR_FIELD_THREAD_MODE};
  return ucc_lib_get_attr(params->context->lib, &attr) != UCC_OK || attr.thread_mode == UCC_THREAD_MULTIPLE;
}

static plait_ucc_context* begin(const ucc_base_context_params_t* params, const struct plait_lib* lib, bool concurrent) {
  const bool exchanges = has_oob(&params->params);
  char host[64];
  snprintf(host, sizeof host, "UCC %s", ucc_get_version_string());
  const struct plait_ucc_process process = {
      .values = (const char* const*)lib->values,
      .value_count = lib->values != NULL ? variables : 0,
      .rank = exchanges ? (int)params->params.oob.oob_ep : 0,
      .ranks = exchanges ? (int)params->params.oob.n_oob_eps : 1,
      .concurrent = concurrent,
      .exchanges = exchanges,
      .host = host,
  };
  return plait_ucc_begin(&process);
}

static ucc_status_t context_create(const ucc_base_context_params_t* params, const ucc_base_config_t* config,
                                   ucc_base_context_t** made) {
  const struct context_config* ours = (const struct context_config*)config;
  const char* tune = ours->super.super.score_str;
  if (tune != NULL && strcmp(tune, "0") == 0) return UCC_ERR_LAST; /* switched off by UCC_TL_PLAIT_TUNE */
  struct plait_context* context = calloc(1, sizeof *context);
  if (context == NULL) return UCC_ERR_NO_MEMORY;
  ucc_base_context_t* base = &context->super.super;
  base->ucc_context = params->context;
  base->lib = &ours->super.tl_lib->super;
  base->score_str = strdup(tune != NULL ? tune : "");
  context->concurrent = is_concurrent(params);
  context->context = begin(params, (const struct plait_lib*)base->lib, context->concurrent);
  if (context->context == NULL || base->score_str == NULL) {
    free(base->score_str);
    free(context);
    return UCC_ERR_NO_MEMORY;
  }
  *made = base;
  return UCC_OK;
}

/* Where a rank's address, which all ranks of the context have, holds what ours has said. */
static const void* introduction_of(const ucc_addr_storage_t* storage, int rank) {
  const ucc_context_addr_header_t* header = UCC_ADDR_STORAGE_RANK_HEADER(storage, rank);
  for (int i = 0; i < header->n_components; ++i)
    if (header->components[i].id == ucc_tl_plait.super.id) return (const char*)header + header->components[i].offset;
  return NULL;
}

/* The ranks' addresses are there. Never a failure: one would end a job that names this layer, and runs without it. */
static ucc_status_t context_create_epilog(ucc_base_context_t* base) {
  struct plait_context* context = (struct plait_context*)base;
  const ucc_context_t* core = base->ucc_context;
  const int ranks = has_oob(&core->params) ? (int)core->params.oob.n_oob_eps : 0;
  const void** introductions = ranks > 0 ? calloc((size_t)ranks, sizeof *introductions) : NULL;
  if (ranks > 0 && introductions == NULL) return UCC_OK; /* it takes no calls */
  for (int rank = 0; rank < ranks; ++rank) introductions[rank] = introduction_of(&core->addr_storage, rank);
  plait_ucc_agree(context->context, ranks, introductions);
  free(introductions);
  return UCC_OK;
}

static void context_destroy(ucc_base_context_t* base) {
  struct plait_context* context = (struct plait_context*)base;
  const ucc_context_params_t* params = &base->ucc_context->params;
  plait_ucc_end(context->context, has_oob(params) ? &params->oob : NULL);
  free(base->score_str);
  free(context);
}

static ucc_status_t context_get_attr(const ucc_base_context_t* base, ucc_base_ctx_attr_t* attr) {
  const struct plait_context* context = (const struct plait_context*)base;
  void* address = attr->attr.ctx_addr;
  ucc_base_ctx_attr_clear(attr);
  if (attr->attr.mask & UCC_CONTEXT_ATTR_FIELD_CTX_ADDR_LEN) attr->attr.ctx_addr_len = plait_ucc_introduction_bytes();
  if (attr->attr.mask & UCC_CONTEXT_ATTR_FIELD_CTX_ADDR) plait_ucc_introduce(context->context, address);
  return UCC_OK;
}

/* Memory that the program has UCC map is used as any other. */
static ucc_status_t no_mem_map(const ucc_base_context_t* context, ucc_mem_map_mode_t mode, ucc_mem_map_memh_t* memory,
                               ucc_mem_map_tl_t* ours) {
  (void)context, (void)mode, (void)memory, (void)ours;
  return UCC_ERR_NOT_SUPPORTED;
}
static ucc_status_t no_mem_unmap(const ucc_base_context_t* context, ucc_mem_map_mode_t mode, ucc_mem_map_tl_t* ours) {
  (void)context, (void)mode, (void)ours;
  return UCC_ERR_NOT_SUPPORTED;
}
static ucc_status_t no_memh_pack(const ucc_base_context_t* context, ucc_mem_map_mode_t mode, ucc_mem_map_tl_t* ours,
                                 void** packed) {
  (void)context, (void)mode, (void)ours, (void)packed;
  return UCC_ERR_NOT_SUPPORTED;
}

/* ---- What UCC looks for ---- */

ucc_tl_iface_t ucc_tl_plait = {
    .super = {.name = "plait", .score = plait_ucc_score},
    .tl_lib_config = {.name = "TL_PLAIT",
                      .prefix = "TL_PLAIT_",
                      .table = lib_fields,
                      .size = sizeof(struct plait_lib_config) + most_variables * sizeof(char*)},
    .tl_context_config = {.name = "TL_PLAIT",
                          .prefix = "TL_PLAIT_",
                          .table = context_fields,
                          .size = sizeof(struct context_config)},
    .lib = {.init = lib_init, .finalize = lib_finalize, .get_attr = lib_get_attr, .get_properties = lib_get_properties},
    .context = {.create = context_create,
                .create_epilog = context_create_epilog,
                .destroy = context_destroy,
                .get_attr = context_get_attr,
                .mem_map = no_mem_map,
                .mem_unmap = no_mem_unmap,
                .memh_pack = no_memh_pack},
    .team = {.create_post = plait_team_create_post,
             .create_test = plait_team_create_test,
             .destroy = plait_team_destroy,
             .get_scores = plait_team_get_scores},
    .coll = {.init = plait_collective_init},
};
UCC_CONFIG_REGISTER_TABLE_ENTRY(&ucc_tl_plait.tl_lib_config, &ucc_config_global_list);
UCC_CONFIG_REGISTER_TABLE_ENTRY(&ucc_tl_plait.tl_context_config, &ucc_config_global_list);
