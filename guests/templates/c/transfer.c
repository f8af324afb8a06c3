#include "memory.h"

static void count(moved_t *moved, text_t content) {
  moved->files++;
  moved->bytes += content.len;
}

static bool closed(error_t *error) {
  return failed(error, "transfer_closed", copy(LITERAL("the host ended the transfer")));
}

static bool read_content(input_t stream, text_t *content, error_t *error) {
  ended_t ended = read_all(stream, SANDBOX_MAX, content, error);
  // Before the next entry the host wants this one's stream back.
  wasi_io_streams_input_stream_drop_own(stream);
  if (ended == CUT) failed(error, "sandbox_full", format("a sandbox holds %u bytes", (uint64_t)SANDBOX_MAX));
  return ended == DONE;
}

static bool take_file(sandbox_t *sandbox, text_t target, exports_leasehold_provider_sync_in_inbound_mapping_t *mapping,
                      moved_t *moved, error_t *error) {
  leasehold_host_transfer_transfer_error_t said;
  input_t stream;
  text_t content;
  fault_t fault;
  uint32_t mode = mapping->mode.is_some ? mapping->mode.val & PERMISSIONS : 0644;
  if (!leasehold_host_transfer_method_source_tar(leasehold_host_transfer_borrow_source(mapping->source), &stream, &said))
    return of_transfer(error, &said);
  if (!read_content(stream, &content, error)) return false;
  if (!put_file(sandbox, target, content, &mode, &fault)) return of_fault(error, fault);
  count(moved, content);
  return true;
}

static bool take_entry(sandbox_t *sandbox, text_t target,
                       leasehold_host_transfer_tuple2_entry_option_own_input_stream_t *found, moved_t *moved,
                       error_t *error) {
  leasehold_host_transfer_entry_t *entry = &found->f0;
  text_t path = normal(format("%s/%s", target, entry->path)), content = {need(0), 0};
  uint32_t mode = entry->mode & PERMISSIONS;
  fault_t fault;
  switch (entry->kind.tag) {
  case LEASEHOLD_HOST_TRANSFER_ENTRY_KIND_DIRECTORY:
    return make_directory(sandbox, path, &mode, &fault) || of_fault(error, fault);
  case LEASEHOLD_HOST_TRANSFER_ENTRY_KIND_FILE:
    if (found->f1.is_some && !read_content(found->f1.val, &content, error)) return false;
    if (content.len != entry->kind.val.file)
      return failed(error, "size_differs",
                    format("%s: %u announced, %u came", path, entry->kind.val.file, (uint64_t)content.len));
    if (!put_file(sandbox, path, content, &mode, &fault)) return of_fault(error, fault);
    count(moved, content);
    return true;
  default:
    return failed(error, "links_unsupported",
                  format("%s -> %s: this sandbox keeps no links", path, entry->kind.val.symlink));
  }
}

bool take(sandbox_t *sandbox, exports_leasehold_provider_sync_in_inbound_mapping_t *mapping, moved_t *moved,
          error_t *error) {
  text_t target = normal(mapping->target_path);
  if (mapping->kind == LEASEHOLD_PROVIDER_SYNC_TYPES_MAPPING_KIND_FILE)
    return take_file(sandbox, target, mapping, moved, error);
  // What was there before goes: the directory becomes what the host gives.
  fault_t fault;
  if (!remove_tree(sandbox, target, &fault) || !make_directory(sandbox, target, NULL, &fault))
    return of_fault(error, fault);
  for (;;) {
    leasehold_host_transfer_option_tuple2_entry_option_own_input_stream_t found;
    leasehold_host_transfer_transfer_error_t said;
    if (!leasehold_host_transfer_method_source_next(leasehold_host_transfer_borrow_source(mapping->source), &found, &said))
      return of_transfer(error, &said);
    if (!found.is_some) return true;
    if (!take_entry(sandbox, target, &found.val, moved, error)) return false;
  }
}

// How many bytes the character at `at` has.
static size_t width(text_t text, size_t at) {
  size_t end = at + 1;
  while (end < text.len && (text.ptr[end] & 0xC0) == 0x80) end++;
  return end - at;
}

static bool matches(text_t text, text_t pattern) {
  size_t at = 0, place = 0, star = SIZE_MAX, resume = 0;
  while (at < text.len) {
    uint8_t want = place < pattern.len ? pattern.ptr[place] : 0;
    if (want == '*') {
      star = place++;
      resume = at;
    } else if (place < pattern.len && want == '?') {
      place++;
      at += width(text, at);
    } else if (place < pattern.len && want == text.ptr[at]) {
      place++;
      at++;
    } else if (star != SIZE_MAX) {
      place = star + 1;
      resume += width(text, resume);
      at = resume;
    } else {
      return false;
    }
  }
  while (place < pattern.len && pattern.ptr[place] == '*') place++;
  return place == pattern.len;
}

// As GNU tar means it: from the start of any component, to the end of any; wildcards match `/` too.
static bool excluded(text_t name, provider_list_string_t patterns) {
  for (size_t start = 0; start < name.len; start++) {
    if (start > 0 && name.ptr[start - 1] != '/') continue;
    for (size_t end = start + 1; end <= name.len; end++) {
      if (end < name.len && name.ptr[end] != '/') continue;
      for (size_t at = 0; at < patterns.len; at++)
        if (matches(slice(name, start, end), patterns.ptr[at])) return true;
    }
  }
  return false;
}

static bool put_entry(leasehold_host_transfer_borrow_sink_t sink, text_t name, node_t *node, error_t *error) {
  leasehold_host_transfer_entry_t entry = {.path = name, .mode = node->mode};
  entry.kind.tag = LEASEHOLD_HOST_TRANSFER_ENTRY_KIND_DIRECTORY;
  if (node->is_file) {
    entry.kind.tag = LEASEHOLD_HOST_TRANSFER_ENTRY_KIND_FILE;
    entry.kind.val.file = node->content.len;
  }
  leasehold_host_transfer_option_own_output_stream_t stream;
  leasehold_host_transfer_transfer_error_t said;
  if (!leasehold_host_transfer_method_sink_put(sink, &entry, &stream, &said)) return of_transfer(error, &said);
  if (!stream.is_some) return true;
  ended_t ended = write_all(stream.val, node->content, error);
  // Before the next entry the host wants this one's stream back.
  wasi_io_streams_output_stream_drop_own(stream.val);
  return ended == CUT ? closed(error) : ended == DONE;
}

static bool give_directory(const sandbox_t *sandbox, node_t *root, provider_list_string_t exclude,
                           leasehold_host_transfer_borrow_sink_t sink, moved_t *moved, error_t *error) {
  if (!put_entry(sink, LITERAL(""), root, error)) return false;
  for (size_t at = 0; at < sandbox->len; at++) {
    node_t *node = &sandbox->nodes[at];
    if (!below(node->path, root->path)) continue;
    text_t name = slice(node->path, root->path.len + 1, node->path.len);
    if (excluded(name, exclude)) continue;
    if (!put_entry(sink, name, node, error)) return false;
    if (node->is_file) count(moved, node->content);
  }
  return true;
}

static bool give_file(node_t *node, leasehold_host_transfer_borrow_sink_t sink, moved_t *moved, error_t *error) {
  output_t stream;
  leasehold_host_transfer_transfer_error_t said;
  if (!leasehold_host_transfer_method_sink_tar(sink, &stream, &said)) return of_transfer(error, &said);
  ended_t ended = write_all(stream, node->content, error);
  wasi_io_streams_output_stream_drop_own(stream);
  count(moved, node->content);
  return ended == CUT ? closed(error) : ended == DONE;
}

bool give(const sandbox_t *sandbox, exports_leasehold_provider_sync_out_outbound_mapping_t *mapping,
          moved_t *moved, error_t *error) {
  text_t source = normal(mapping->source_path);
  for (size_t at = 0; at < mapping->exclude.len; at++) {
    text_t pattern = mapping->exclude.ptr[at];
    if (memchr(pattern.ptr, '[', pattern.len) || memchr(pattern.ptr, '\\', pattern.len))
      return failed(error, "exclude_unsupported", format("%s: only `*` and `?` are understood", pattern));
  }
  node_t *node = find(sandbox, source);
  if (!node) return of_fault(error, (fault_t){"not_found", source, "no such file or directory"});
  leasehold_host_transfer_borrow_sink_t sink = leasehold_host_transfer_borrow_sink(mapping->sink);
  if (mapping->kind == LEASEHOLD_PROVIDER_SYNC_TYPES_MAPPING_KIND_FILE) {
    if (!node->is_file) return of_fault(error, (fault_t){"is_a_directory", source, "is a directory"});
    if (!give_file(node, sink, moved, error)) return false;
  } else {
    if (node->is_file) return of_fault(error, (fault_t){"not_a_directory", source, "not a directory"});
    if (!give_directory(sandbox, node, mapping->exclude, sink, moved, error)) return false;
  }
  leasehold_host_transfer_transfer_error_t said;
  return leasehold_host_transfer_method_sink_finish(sink, &said) || of_transfer(error, &said);
}
