//! From a launch in shared memory to a running program.

use super::last_error;
use rustix::io::Errno;
use std::ffi::{CStr, c_char};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// A launch (see `crate::jail::launch`) mapped into this process, private to it.
pub(in crate::jail) struct Launch {
    base: *mut u64,
    size: usize,
}

impl Launch {
    /// Maps `size` bytes of the handle.
    pub(in crate::jail) fn map(handle: BorrowedFd<'_>, size: usize) -> Result<Launch, Errno> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new private mapping at an address the kernel picks touches nothing that exists.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_PRIVATE, handle.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED { Err(last_error()) } else { Ok(Launch { base: base.cast(), size }) }
    }

    fn word(&self, index: usize) -> u64 {
        if (index + 1) * 8 > self.size {
            return 0;
        }
        // SAFETY: within the mapping, which is page-aligned, by the check above.
        unsafe { self.base.add(index).read() }
    }

    /// The address of what lies at an offset.
    fn at(&self, offset: u64) -> *mut c_char {
        self.base.cast::<c_char>().wrapping_add(usize::try_from(offset).unwrap_or(0))
    }

    /// The working directory.
    pub(in crate::jail) fn directory(&self) -> &CStr {
        // SAFETY: the host wrote a text that ends with zero at this offset, inside the mapping.
        unsafe { CStr::from_ptr(self.at(self.word(0))) }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        // SAFETY: made by `mmap` with this size, and nothing borrows from it any more.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

/// Replaces this process by the first of the launch's programs that can be executed. Returns only when
/// none can: with the most telling reason.
pub(in crate::jail) fn exec(launch: &Launch) -> Errno {
    let count = |index| usize::try_from(launch.word(index)).unwrap_or(0);
    let (paths, arguments, environment) = (4, 4 + count(1), 4 + count(1) + count(2) + 1);
    // From offsets to addresses, in place: the mapping is private and this process ends here either way.
    for index in (arguments..arguments + count(2)).chain(environment..environment + count(3)) {
        let address = launch.at(launch.word(index)) as u64;
        // SAFETY: `word` returned the value at this index, so it lies inside the mapping.
        unsafe { launch.base.add(index).write(address) };
    }
    let mut reason = Errno::NOENT;
    for index in paths..paths + count(1) {
        // SAFETY: the path and every text of both lists end with zero, and both lists end with a null:
        // the host wrote them so, and the loop above turned their offsets into addresses.
        unsafe {
            libc::execve(
                launch.at(launch.word(index)),
                launch.base.add(arguments).cast::<*const c_char>(),
                launch.base.add(environment).cast::<*const c_char>(),
            )
        };
        match last_error() {
            Errno::NOENT | Errno::NOTDIR => {}
            // A later directory may have one that can be executed, as every shell looks for it.
            Errno::ACCESS => reason = Errno::ACCESS,
            other => return other,
        }
    }
    reason
}
