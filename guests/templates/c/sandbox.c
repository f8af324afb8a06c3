#include "memory.h"

static const uint32_t FILE_MODE = 0644;
static const uint32_t DIRECTORY_MODE = 0755;

text_t normal(text_t path) {
  // The result is never longer than the path with a slash before it.
  text_t whole = {need(path.len + 1), 0};
  for (size_t at = 0; at <= path.len;) {
    size_t end = at;
    while (end < path.len && path.ptr[end] != '/') end++;
    text_t name = slice(path, at, end);
    at = end + 1;
    if (equal(name, LITERAL(".."))) {
      while (whole.len > 0 && whole.ptr[--whole.len] != '/') {}
    } else if (name.len > 0 && !equal(name, LITERAL("."))) {
      whole.ptr[whole.len++] = '/';
      memcpy(whole.ptr + whole.len, name.ptr, name.len);
      whole.len += name.len;
    }
  }
  return whole.len ? whole : LITERAL("/");
}

text_t resolve(const sandbox_t *sandbox, text_t path) {
  return normal(starts_with(path, LITERAL("/")) ? path : format("%s/%s", sandbox->cwd, path));
}

bool below(text_t path, text_t directory) {
  return path.len > directory.len && path.ptr[directory.len] == '/' && starts_with(path, directory);
}

static bool inside(text_t path, fault_t *fault) {
  if (equal(path, WORKSPACE) || below(path, WORKSPACE)) return true;
  *fault = (fault_t){"outside", path, "outside of /workspace"};
  return false;
}

// Where a path is, or would be.
static size_t place(const sandbox_t *sandbox, text_t path) {
  size_t low = 0, high = sandbox->len;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (compare(sandbox->nodes[middle].path, path) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

node_t *find(const sandbox_t *sandbox, text_t path) {
  size_t at = place(sandbox, path);
  return at < sandbox->len && equal(sandbox->nodes[at].path, path) ? &sandbox->nodes[at] : NULL;
}

static void set(sandbox_t *sandbox, node_t node) {
  node_t *there = find(sandbox, node.path);
  if (there) {
    *there = node;
    return;
  }
  size_t at = place(sandbox, node.path);
  sandbox->nodes = realloc(sandbox->nodes, (sandbox->len + 1) * sizeof node);
  if (!sandbox->nodes) __builtin_trap();
  memmove(&sandbox->nodes[at + 1], &sandbox->nodes[at], (sandbox->len - at) * sizeof node);
  sandbox->nodes[at] = node;
  sandbox->len++;
}

bool make_directory(sandbox_t *sandbox, text_t path, uint32_t *mode, fault_t *fault) {
  if (!inside(path, fault)) return false;
  for (size_t end = WORKSPACE.len; end <= path.len; end++) {
    if (end < path.len && path.ptr[end] != '/') continue;
    text_t prefix = slice(path, 0, end);
    node_t *there = find(sandbox, prefix);
    if (!there) set(sandbox, (node_t){.path = prefix, .mode = DIRECTORY_MODE});
    else if (there->is_file) {
      *fault = (fault_t){"not_a_directory", prefix, "not a directory"};
      return false;
    }
  }
  if (mode) find(sandbox, path)->mode = *mode;
  return true;
}

bool put_file(sandbox_t *sandbox, text_t path, text_t content, const uint32_t *mode, fault_t *fault) {
  if (!inside(path, fault)) return false;
  node_t *old = find(sandbox, path);
  if (equal(path, WORKSPACE) || (old && !old->is_file)) {
    *fault = (fault_t){"is_a_directory", path, "is a directory"};
    return false;
  }
  node_t node = {path, mode ? *mode : old ? old->mode : FILE_MODE, true, content};
  size_t slash = path.len;
  while (path.ptr[--slash] != '/') {}
  if (!make_directory(sandbox, slice(path, 0, slash), NULL, fault)) return false;
  set(sandbox, node);
  return true;
}

bool remove_tree(sandbox_t *sandbox, text_t path, fault_t *fault) {
  if (!inside(path, fault)) return false;
  size_t kept = 0;
  for (size_t at = 0; at < sandbox->len; at++) {
    text_t name = sandbox->nodes[at].path;
    if (!equal(name, path) && !below(name, path)) sandbox->nodes[kept++] = sandbox->nodes[at];
  }
  sandbox->len = kept;
  return true;
}

// A sandbox is stored as records, each a line `kind mode length-of-path length-of-content`, then the path,
// then the content. Kinds: `w` the working directory, `d` a directory, `f` a file.

static text_t record(const char *kind, node_t node) {
  uint64_t mode = node.mode, name = node.path.len, content = node.content.len;
  return format("%z %o %u %u\n%s%s", kind, mode, name, content, node.path, node.content);
}

text_t encode(const sandbox_t *sandbox) {
  text_t *records = need((sandbox->len + 1) * sizeof *records);
  records[0] = record("w", (node_t){.path = sandbox->cwd});
  size_t len = records[0].len;
  for (size_t at = 0; at < sandbox->len; at++) {
    records[at + 1] = record(sandbox->nodes[at].is_file ? "f" : "d", sandbox->nodes[at]);
    len += records[at + 1].len;
  }
  text_t whole = {need(len), 0};
  for (size_t at = 0; at <= sandbox->len; at++) {
    memcpy(whole.ptr + whole.len, records[at].ptr, records[at].len);
    whole.len += records[at].len;
  }
  return whole;
}

// The number before the next `stop`.
static bool take_number(text_t value, size_t *at, uint8_t stop, unsigned base, size_t *found) {
  size_t from = *at;
  for (*found = 0; *at < value.len && value.ptr[*at] != stop; ++*at) {
    unsigned digit = value.ptr[*at] - (unsigned)'0';
    if (digit >= base || *found > SANDBOX_MAX) return false;
    *found = *found * base + digit;
  }
  return *at > from && (*at)++ < value.len;
}

static bool decode(text_t value, sandbox_t *sandbox) {
  for (size_t at = 0; at < value.len;) {
    size_t mode, name, content;
    uint8_t kind = value.ptr[at];
    at += 2;
    if (!take_number(value, &at, ' ', 8, &mode) || !take_number(value, &at, ' ', 10, &name) ||
        !take_number(value, &at, '\n', 10, &content) || name + content > value.len - at)
      return false;
    text_t path = slice(value, at, at + name);
    node_t node = {path, mode, kind == 'f', slice(value, at + name, at + name + content)};
    at += name + content;
    if (kind == 'w') sandbox->cwd = path;
    else set(sandbox, node);
  }
  return true;
}

bool load(text_t lease_id, sandbox_t *sandbox, error_t *error) {
  leasehold_host_state_option_versioned_t found;
  leasehold_host_state_state_error_t said;
  *sandbox = (sandbox_t){.cwd = WORKSPACE};
  if (!leasehold_host_state_get(&lease_id, &found, &said)) return of_state(error, &said);
  if (!found.is_some) {
    error->tag = LEASEHOLD_PROVIDER_TYPES_ERROR_GONE;
    return false;
  }
  sandbox->version = found.val.version;
  if (decode((text_t){found.val.value.ptr, found.val.value.len}, sandbox)) return true;
  return failed(error, "state_damaged", copy(LITERAL("the stored sandbox cannot be read; destroy the lease")));
}

bool save(text_t lease_id, sandbox_t *sandbox, error_t *error) {
  text_t whole = encode(sandbox);
  if (whole.len > SANDBOX_MAX)
    return failed(error, "sandbox_full", format("a sandbox holds %u bytes", (uint64_t)SANDBOX_MAX));
  provider_list_u8_t value = {whole.ptr, whole.len};
  leasehold_host_state_state_error_t said;
  uint64_t version;
  if (!leasehold_host_state_set(&lease_id, &value, &sandbox->version, NULL, &version, &said))
    return of_state(error, &said);
  sandbox->version = version;
  return true;
}
