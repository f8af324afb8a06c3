//! Giving back the host's memory.
//!
//! The first process of a jail starts as a copy of the host. It needs none of what the host holds, and
//! must not keep it: as long as it does, each page the host changes exists twice, and secrets of the host
//! lie in a process that runs beside foreign code.

/// Ranges that a copy of the host can do without.
pub(in crate::jail) struct HostMemory {
    ranges: [(usize, usize); RANGES],
    count: usize,
}

/// Ranges remembered. A process has a few hundred; what lies beyond stays until the jail ends.
const RANGES: usize = 2048;

impl HostMemory {
    const fn none() -> HostMemory {
        HostMemory { ranges: [(0, 0); RANGES], count: 0 }
    }

    /// Looks the ranges up, in the host, on the thread that starts the jail: that thread's stack is the
    /// one the new process goes on to use.
    ///
    /// Only anonymous writable memory: code and data of the program and its libraries stay, and so does
    /// what directly follows them (their zeroed data has no name).
    pub(in crate::jail) fn find() -> HostMemory {
        let mut found = HostMemory::none();
        let Some(stack) = own_stack() else { return found };
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return found };
        let mut data_end = 0;
        for line in maps.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(range), Some(access), Some(inode)) = (fields.next(), fields.next(), fields.nth(2))
            else {
                continue;
            };
            let name = fields.next().unwrap_or_default();
            let address = |text: &str| usize::from_str_radix(text, 16).unwrap_or(0);
            let Some((start, end)) = range.split_once('-').map(|(a, b)| (address(a), address(b))) else {
                continue;
            };
            if inode != "0" || start == data_end {
                data_end = end;
                continue;
            }
            let anonymous = name.is_empty() || name == "[heap]" || name.starts_with("[anon");
            if anonymous && access == "rw-p" {
                // The kernel shows neighbours as one, so the stack may lie in the middle of a range.
                found.add(start, end.min(stack.start));
                found.add(start.max(stack.end), end);
            }
        }
        found
    }

    fn add(&mut self, start: usize, end: usize) {
        if let Some(slot) = self.ranges.get_mut(self.count).filter(|_| start < end) {
            *slot = (start, end - start);
            self.count += 1;
        }
    }

    /// Gives the ranges back. From here on the heap is empty pages, so this value must not lie in it.
    pub(in crate::jail) fn forget(&self) {
        for (start, length) in self.ranges.iter().take(self.count) {
            // SAFETY: this process is a copy that never touches the host's heap, other threads' stacks or
            // guest memory again: what it still uses are its own stack, code and static data, which are
            // not in the list. A range that the host changed meanwhile makes this fail, which is fine.
            unsafe { libc::madvise(*start as *mut libc::c_void, *length, libc::MADV_DONTNEED) };
        }
    }
}

/// The stack of this thread, with what the C library keeps beside it.
fn own_stack() -> Option<std::ops::Range<usize>> {
    /// What some C libraries keep above the stack itself: the thread's own data.
    const ABOVE: usize = 256 << 10;
    // SAFETY: plain records on this stack, filled in by the calls that are given their addresses, and
    // destroyed as the interface wants it.
    let (low, size) = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let answer = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        if answer != 0 {
            return None;
        }
        (low as usize, size)
    };
    Some(low..low + size + ABOVE)
}
