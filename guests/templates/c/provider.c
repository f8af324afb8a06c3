// A provider whose sandboxes are small trees in the host's store. One function for each interface.
#include "memory.h"

// Time that one write to the store may take.
static const uint64_t ACQUIRE_BUDGET_MS = 1000;
// There is no account at a back end; this is the digest of an empty one.
#define NO_ACCOUNT LITERAL("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

static leasehold_provider_types_lease_t lease_of(text_t id) {
  return (leasehold_provider_types_lease_t){
      .id = id, .metadata = {true, copy(LITERAL("{\"sandbox\":\"memory\"}"))}, .expires_at_ms = {.is_some = false}};
}

// The id follows from the creation name, so a second call finds what the first one made.
static text_t lease_id(text_t creation_name) {
  return format("memory-%s", creation_name);
}

// Makes a directory and the working directory of it.
static bool enter(text_t id, sandbox_t *sandbox, text_t path, error_t *error) {
  fault_t fault;
  sandbox->cwd = normal(path);
  if (!make_directory(sandbox, sandbox->cwd, NULL, &fault)) return of_fault(error, fault);
  return save(id, sandbox, error);
}

static bool remove_sandbox(text_t id, leasehold_provider_types_receipt_t *receipt, error_t *error) {
  leasehold_host_state_state_error_t said;
  bool there;
  if (!leasehold_host_state_remove(&id, NULL, &there, &said)) return of_state(error, &said);
  receipt->lease_id = id;
  receipt->state = there ? LEASEHOLD_PROVIDER_TYPES_DISPOSITION_DESTROYED
                         : LEASEHOLD_PROVIDER_TYPES_DISPOSITION_ALREADY_GONE;
  return true;
}

bool exports_leasehold_provider_validate_config_validate_config(
    leasehold_provider_types_context_t *ctx, exports_leasehold_provider_validate_config_accepted_config_t *ret,
    error_t *err) {
  size_t kept = 0;
  for (size_t at = 0; at < ctx->config.len; at++) {
    uint8_t byte = ctx->config.ptr[at];
    if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n') ctx->config.ptr[kept++] = byte;
  }
  ctx->config.len = kept;
  if (equal(ctx->config, LITERAL("{}"))) {
    *ret = (exports_leasehold_provider_validate_config_accepted_config_t){0};
    return true;
  }
  err->tag = LEASEHOLD_PROVIDER_TYPES_ERROR_INVALID_CONFIG;
  err->val.invalid_config.len = 1;
  err->val.invalid_config.ptr = need(sizeof *err->val.invalid_config.ptr);
  provider_string_dup(&err->val.invalid_config.ptr->path, "");
  provider_string_dup(&err->val.invalid_config.ptr->message, "this provider takes no settings; write {}");
  return false;
}

bool exports_leasehold_provider_acquire_lease_acquire_lease(
    leasehold_provider_types_context_t *ctx, exports_leasehold_provider_acquire_lease_acquire_request_t *request,
    leasehold_provider_types_lease_t *ret, exports_leasehold_provider_acquire_lease_acquire_error_t *err) {
  (void)ctx;
  uint64_t started = wasi_clocks_monotonic_clock_now();
  sandbox_t sandbox = {.cwd = request->requested_cwd.is_some ? normal(request->requested_cwd.val) : WORKSPACE};
  fault_t fault;
  *err = (exports_leasehold_provider_acquire_lease_acquire_error_t){0};
  if (!make_directory(&sandbox, sandbox.cwd, NULL, &fault)) return of_fault(&err->error, fault);

  text_t id = lease_id(request->creation_name), whole = encode(&sandbox);
  provider_list_u8_t value = {whole.ptr, whole.len};
  leasehold_host_state_state_error_t said;
  uint64_t version;
  if (leasehold_host_state_set(&id, &value, &sandbox.version, NULL, &version, &said) ||
      // Made by an earlier call of the same name: that one is adopted.
      said.tag == LEASEHOLD_HOST_STATE_STATE_ERROR_CONFLICT) {
    *ret = lease_of(id);
    return true;
  }
  of_state(&err->error, &said);
  err->diagnostic.is_some = true;
  err->diagnostic.val.phase = EXPORTS_LEASEHOLD_PROVIDER_ACQUIRE_LEASE_ACQUISITION_PHASE_CREATE;
  err->diagnostic.val.elapsed_ms = (wasi_clocks_monotonic_clock_now() - started) / 1000000;
  err->diagnostic.val.budget_ms = ACQUIRE_BUDGET_MS;
  err->cleanup.is_some = true;
  err->cleanup.val.creation_name = request->creation_name;
  err->cleanup.val.account_fingerprint = copy(NO_ACCOUNT);
  err->cleanup.val.labels.len = 1;
  err->cleanup.val.labels.ptr = need(sizeof *err->cleanup.val.labels.ptr);
  provider_string_dup(&err->cleanup.val.labels.ptr->f0, "provider");
  provider_string_dup(&err->cleanup.val.labels.ptr->f1, "memory");
  return false;
}

bool exports_leasehold_provider_resume_lease_resume_lease(
    leasehold_provider_types_context_t *ctx, exports_leasehold_provider_resume_lease_resume_request_t *request,
    leasehold_provider_types_lease_t *ret, error_t *err) {
  (void)ctx;
  sandbox_t sandbox;
  text_t id = request->lease.id;
  if (!load(id, &sandbox, err)) return false;
  if (request->requested_cwd.is_some && !enter(id, &sandbox, request->requested_cwd.val, err)) return false;
  *ret = lease_of(id);
  return true;
}

bool exports_leasehold_provider_release_lease_release_lease(
    leasehold_provider_types_context_t *ctx, exports_leasehold_provider_release_lease_release_request_t *request,
    leasehold_provider_types_receipt_t *ret, error_t *err) {
  (void)ctx;
  if (request->retention == LEASEHOLD_PROVIDER_TYPES_RETENTION_EPHEMERAL)
    return remove_sandbox(request->lease.id, ret, err);
  leasehold_host_state_option_versioned_t found;
  leasehold_host_state_state_error_t said;
  if (!leasehold_host_state_get(&request->lease.id, &found, &said)) return of_state(err, &said);
  ret->lease_id = request->lease.id;
  ret->state = found.is_some ? LEASEHOLD_PROVIDER_TYPES_DISPOSITION_RETAINED
                             : LEASEHOLD_PROVIDER_TYPES_DISPOSITION_ALREADY_GONE;
  return true;
}

bool exports_leasehold_provider_destroy_lease_destroy_lease(
    leasehold_provider_types_context_t *ctx, exports_leasehold_provider_destroy_lease_destroy_target_t *target,
    leasehold_provider_types_receipt_t *ret, exports_leasehold_provider_destroy_lease_destroy_error_t *err) {
  (void)ctx;
  bool leased = target->tag == EXPORTS_LEASEHOLD_PROVIDER_DESTROY_LEASE_DESTROY_TARGET_LEASE;
  text_t id = leased ? target->val.lease.id : lease_id(target->val.abandoned.creation_name);
  if (remove_sandbox(id, ret, &err->error)) return true;
  err->cleanup.is_some = !leased;
  if (!leased) err->cleanup.val = target->val.abandoned;
  return false;
}

bool exports_leasehold_provider_realize_workspace_realize_workspace(
    leasehold_provider_types_context_t *ctx,
    exports_leasehold_provider_realize_workspace_workspace_request_t *request,
    exports_leasehold_provider_realize_workspace_workspace_t *ret, error_t *err) {
  (void)ctx;
  sandbox_t sandbox;
  text_t id = request->lease.id;
  if (!load(id, &sandbox, err)) return false;
  if (!enter(id, &sandbox, request->path.is_some ? request->path.val : sandbox.cwd, err)) return false;
  ret->cwd = copy(sandbox.cwd);
  ret->metadata.is_some = false;
  return true;
}

bool exports_leasehold_provider_execute_execute(leasehold_provider_types_context_t *ctx,
                                                exports_leasehold_provider_execute_execute_request_t *request,
                                                input_t input, output_t standard_output, output_t standard_error,
                                                exports_leasehold_provider_execute_execute_result_t *ret,
                                                error_t *err) {
  (void)ctx;
  sandbox_t sandbox;
  if (request->argv.len == 0) return failed(err, "no_command", copy(LITERAL("argv is empty")));
  if (!load(request->lease.id, &sandbox, err)) return false;
  sandbox.cwd = normal(request->cwd.is_some ? request->cwd.val : sandbox.cwd);
  command_t command = {request, &sandbox, input, standard_output, standard_error};
  ret->metadata.is_some = false;
  return run(&command, &ret->exit, err);
}

bool exports_leasehold_provider_sync_in_sync_in(leasehold_provider_types_context_t *ctx,
                                                leasehold_provider_types_lease_t *lease,
                                                exports_leasehold_provider_sync_in_list_inbound_operation_t *operations,
                                                exports_leasehold_provider_sync_in_list_operation_result_t *ret,
                                                error_t *err) {
  (void)ctx;
  ret->len = operations->len;
  ret->ptr = need(operations->len * sizeof *ret->ptr);
  for (size_t at = 0; at < operations->len; at++) {
    exports_leasehold_provider_sync_in_inbound_operation_t *operation = &operations->ptr[at];
    if (operation->post_upload.len > 0)
      return failed(err, "post_upload_unsupported",
                    format("there is no shell here to run `%s`", operation->post_upload.ptr[0].command));
    sandbox_t sandbox;
    moved_t *moved = &ret->ptr[at];
    *moved = (moved_t){.operation_id = operation->operation_id};
    if (!load(lease->id, &sandbox, err)) return false;
    for (size_t mapping = 0; mapping < operation->mappings.len; mapping++)
      if (!take(&sandbox, &operation->mappings.ptr[mapping], moved, err)) return false;
    // Only now is anything kept: an operation is done completely or not at all.
    if (!save(lease->id, &sandbox, err)) return false;
  }
  return true;
}

bool exports_leasehold_provider_sync_out_sync_out(
    leasehold_provider_types_context_t *ctx, leasehold_provider_types_lease_t *lease,
    exports_leasehold_provider_sync_out_list_outbound_operation_t *operations,
    exports_leasehold_provider_sync_out_list_operation_result_t *ret, error_t *err) {
  (void)ctx;
  ret->len = operations->len;
  ret->ptr = need(operations->len * sizeof *ret->ptr);
  for (size_t at = 0; at < operations->len; at++) {
    exports_leasehold_provider_sync_out_outbound_operation_t *operation = &operations->ptr[at];
    sandbox_t sandbox;
    moved_t *moved = &ret->ptr[at];
    *moved = (moved_t){.operation_id = operation->operation_id};
    if (!load(lease->id, &sandbox, err)) return false;
    for (size_t mapping = 0; mapping < operation->mappings.len; mapping++)
      if (!give(&sandbox, &operation->mappings.ptr[mapping], moved, err)) return false;
  }
  return true;
}
