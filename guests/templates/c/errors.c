#include "memory.h"

bool failed(error_t *error, const char *code, text_t message) {
  error->tag = LEASEHOLD_PROVIDER_TYPES_ERROR_FAILED;
  provider_string_dup(&error->val.failed.code, code);
  error->val.failed.message = message;
  return false;
}

bool unavailable(error_t *error, const char *message) {
  error->tag = LEASEHOLD_PROVIDER_TYPES_ERROR_TRANSIENT;
  error->val.transient.category = LEASEHOLD_PROVIDER_TYPES_TRANSIENT_CATEGORY_UNAVAILABLE;
  error->val.transient.retry_after_ms.is_some = false;
  provider_string_dup(&error->val.transient.message, message);
  return false;
}

bool of_fault(error_t *error, fault_t fault) {
  text_t message = format("%s: %z", fault.path, fault.reason);
  if (strcmp(fault.code, "outside") != 0) return failed(error, fault.code, message);
  error->tag = LEASEHOLD_PROVIDER_TYPES_ERROR_DENIED;
  error->val.denied = message;
  return false;
}

bool of_state(error_t *error, const leasehold_host_state_state_error_t *said) {
  switch (said->tag) {
  case LEASEHOLD_HOST_STATE_STATE_ERROR_CONFLICT:
    return unavailable(error, "the sandbox was changed meanwhile; try again");
  case LEASEHOLD_HOST_STATE_STATE_ERROR_QUOTA:
    return failed(error, "sandbox_full", said->val.quota);
  default:
    return unavailable(error, "the store of sandboxes cannot be reached");
  }
}

bool of_transfer(error_t *error, const leasehold_host_transfer_transfer_error_t *said) {
  switch (said->tag) {
  case LEASEHOLD_HOST_TRANSFER_TRANSFER_ERROR_LIMIT:
    return failed(error, "transfer_limit", said->val.limit);
  case LEASEHOLD_HOST_TRANSFER_TRANSFER_ERROR_REFUSED:
    return failed(error, "transfer_refused", said->val.refused);
  case LEASEHOLD_HOST_TRANSFER_TRANSFER_ERROR_FAILED:
    return failed(error, "transfer_failed", said->val.failed);
  default:
    return failed(error, "transfer_closed", copy(LITERAL("the host ended the transfer")));
  }
}
