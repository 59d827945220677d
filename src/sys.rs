//! System calls without a safe wrapper in a library: file leases, the unacknowledged bytes of a socket, the cached
//! pages of a file, and the return of freed memory to the system.
//!
//! With [`isogen::mmap`], this is all the `unsafe` code of the workspace.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_uint};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use isogen::Extent;

/// The value of `F_SETSIG`, which `libc` does not define. It is the same on all architectures of base images.
const F_SETSIG: c_int = 10;
/// The number of the system call `cachestat`, which `libc` defines for some architectures only. It is the same on all
/// architectures of base images.
const CACHESTAT: c_long = 451;

/// Makes glibc's allocator return each freed block of at least 1 MiB to the system immediately. By default, glibc
/// reuses freed blocks of up to 32 MiB for smaller allocations. After many large configs, a small allocation can then
/// keep the memory of a whole large block in use. Must be called before threads are started. Has no effect on other
/// allocators.
pub(crate) fn unmap_large_blocks_when_freed() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BLOCK_LEN: c_int = 1 << 20;
        // Set both values, because glibc derives the second from the first only if neither is set.
        let settings =
            [(libc::M_MMAP_THRESHOLD, LARGE_BLOCK_LEN), (libc::M_TRIM_THRESHOLD, 2 * LARGE_BLOCK_LEN)];
        for (name, value) in settings {
            // The call fails only for a threshold above 32 MiB.
            // SAFETY: the call takes two numbers, and the caller has no other thread yet.
            unsafe { libc::mallopt(name, value) };
        }
    }
}

/// Takes a read lease of a file. The kernel sends `signal` to this process when another process wants to write.
///
/// # Errors
///
/// Returns an error if any process has the file open for writing, if another user owns it, or if the file system does
/// not support leases.
pub(crate) fn take_lease(file: &File, signal: c_int) -> io::Result<()> {
    fcntl(file, F_SETSIG, signal)?;
    // By default, the kernel sends the signal to the calling thread. The signal is lost if that thread has ended.
    fcntl(file, libc::F_SETOWN, c_int::try_from(std::process::id()).map_err(io::Error::other)?)?;
    fcntl(file, libc::F_SETLEASE, libc::F_RDLCK)?;
    Ok(())
}

/// Releases the lease of a file.
pub(crate) fn release_lease(file: &File) -> io::Result<()> {
    fcntl(file, libc::F_SETLEASE, libc::F_UNLCK).map(drop)
}

/// Returns `true` if a file has a read lease, and no process waits for its release.
pub(crate) fn holds_lease(file: &File) -> bool {
    // While a process waits for the release, the kernel reports the future type of the lease.
    fcntl(file, libc::F_GETLEASE, 0).ok() == Some(libc::F_RDLCK)
}

/// Calls `fcntl` with a command that takes a number and returns a number.
fn fcntl(file: &File, command: c_int, value: c_int) -> io::Result<c_int> {
    // SAFETY: the descriptor is open while the file is borrowed, and the commands above take no pointer.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the number of bytes in the send buffer of a TCP socket: bytes that the client has not acknowledged, and
/// bytes that are not sent yet.
///
/// # Errors
///
/// Returns an error if the descriptor is not a TCP socket.
pub(crate) fn unacked_bytes(socket: impl AsFd) -> io::Result<usize> {
    let mut len: c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed, and the call (`SIOCOUTQ`, the same number as `TIOCOUTQ`)
    // writes one `int` to the pointer, which is valid until it returns.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut len) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    usize::try_from(len).map_err(io::Error::other)
}

/// The argument of `cachestat`.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

/// The result of `cachestat`: numbers of pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    _others: [u64; 4],
}

/// Returns `true` if the page cache contains all pages of an extent. The disk may still be reading some of them.
///
/// Returns `false` if the kernel does not support `cachestat` (before Linux 6.5), or allows the call only to the owner
/// of the file.
pub(crate) fn has_all_pages(file: &File, extent: Extent) -> bool {
    let range = CachestatRange { offset: extent.offset(), len: extent.len() };
    let mut counts = Cachestat::default();
    let flags: c_uint = 0;
    // SAFETY: the descriptor is open while the file is borrowed; the call reads the first structure and writes the
    // second. Both have the kernel's layout and live until the call returns.
    let result =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, flags) };
    // SAFETY: the call takes a number and returns one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = u64::try_from(page).ok().filter(|page| *page > 0) else { return false };
    let pages = extent.end().div_ceil(page).saturating_sub(extent.offset() / page);
    result == 0 && counts.cached >= pages
}

/// Returns freed memory to the system. glibc keeps freed blocks below 1 MiB in its arenas, of which there are up to
/// eight for each CPU. It returns larger blocks when they are freed: see [`unmap_large_blocks_when_freed`]. Other
/// allocators return memory themselves, so this function does nothing for them.
pub(crate) fn trim_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number, and locks the arenas that it changes.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::FileExt;

    use rustix::fs::{Advice, fadvise};

    use super::*;

    #[test]
    fn unacked_bytes_fall_to_zero_when_the_client_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut socket = listener.accept().unwrap().0;
        assert_eq!(unacked_bytes(&socket).unwrap(), 0);
        socket.set_nonblocking(true).unwrap();
        let mut total = 0;
        while let Ok(len) = socket.write(&[0; 9999]) {
            total += len;
        }
        assert!(unacked_bytes(&socket).unwrap() > 0);
        client.read_exact(&mut vec![0; total]).unwrap();
        while unacked_bytes(&socket).unwrap() > 0 {
            std::thread::yield_now();
        }
        assert!(unacked_bytes(tempfile::tempfile().unwrap()).is_err());
    }

    #[test]
    fn written_pages_are_cached_but_pages_after_the_end_are_not() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 5 << 12], 0).unwrap();
        let has = |offset, len| has_all_pages(&file, Extent::new(offset, len).unwrap());
        if !has(0, 1) {
            eprintln!("SKIPPED: this kernel or file system has no cachestat");
            return;
        }
        assert!(has(0, 5 << 12) && has(4095, 2) && has((5 << 12) - 1, 1));
        assert!(!has(0, 1 << 20) && !has(1 << 20, 1));
        // A hole in a file has no cached pages until a process reads it.
        file.set_len(1 << 20).unwrap();
        assert!(!has(1 << 19, 1));
    }

    #[test]
    fn dropped_pages_are_not_cached() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let whole = Extent::new(0, 1 << 20).unwrap();
        let has_lost_any = (0..100).any(|_| {
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            !has_all_pages(&file, whole)
        });
        // On tmpfs, the cache is the only copy of the pages, so they cannot be dropped.
        const TMPFS: u64 = 0x0102_1994;
        assert!(has_lost_any || u64::try_from(rustix::fs::fstatfs(&file).unwrap().f_type) == Ok(TMPFS));
    }
}
