//! Calls of the system that no library has a safe form of: file leases, unacknowledged bytes of a socket, cached pages
//! of a file, memory that the allocator keeps.
//!
//! With [`isogen::mmap`], this is all the `unsafe` code of the workspace.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_uint};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use isogen::Extent;

/// `F_SETSIG`, which `libc` does not name. It is the same on all architectures of base images.
const F_SETSIG: c_int = 10;
/// `cachestat`, which `libc` names for some architectures only. It is the same on all architectures of base images.
const CACHESTAT: c_long = 451;

/// Makes the allocator of glibc return each block of at least 1 MiB to the system when it is freed. By default, it reuses
/// freed blocks of up to 32 MiB for smaller ones: after many large configs, each small block that is kept holds on to
/// the memory of a large one. Other allocators are left unchanged. Call it before threads are started.
pub(crate) fn unmap_large_blocks_when_freed() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BLOCK_LEN: c_int = 1 << 20;
        // The allocator derives the second setting from the first one only as long as neither is set.
        let settings =
            [(libc::M_MMAP_THRESHOLD, LARGE_BLOCK_LEN), (libc::M_TRIM_THRESHOLD, 2 * LARGE_BLOCK_LEN)];
        for (name, value) in settings {
            // It fails only for a first value above 32 MiB.
            // SAFETY: the call takes two numbers, and the caller has no other thread yet.
            unsafe { libc::mallopt(name, value) };
        }
    }
}

/// Takes a read lease of a file. The kernel sends `signal` to this process when another process wants to write.
///
/// # Errors
///
/// Returns an error if any process has the file open for writing, if another user owns it, or if its file system has no
/// leases.
pub(crate) fn take_lease(file: &File, signal: c_int) -> io::Result<()> {
    fcntl(file, F_SETSIG, signal)?;
    // By default the signal goes to the thread that takes the lease, and is lost after that thread ended.
    fcntl(file, libc::F_SETOWN, c_int::try_from(std::process::id()).map_err(io::Error::other)?)?;
    fcntl(file, libc::F_SETLEASE, libc::F_RDLCK)?;
    Ok(())
}

/// Releases a lease.
pub(crate) fn release_lease(file: &File) -> io::Result<()> {
    fcntl(file, libc::F_SETLEASE, libc::F_UNLCK).map(drop)
}

/// Returns `true` if a file has a read lease that no process waits for.
pub(crate) fn holds_lease(file: &File) -> bool {
    // While a lease is being broken, the kernel reports the type that it will have.
    fcntl(file, libc::F_GETLEASE, 0).ok() == Some(libc::F_RDLCK)
}

/// One of the commands of `fcntl` that take a number and return one.
fn fcntl(file: &File, command: c_int, value: c_int) -> io::Result<c_int> {
    // SAFETY: the descriptor is open while the file is borrowed, and the commands above take no pointer.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the number of bytes that a TCP socket holds and that the client has not acknowledged, sent or not.
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

/// The answer of `cachestat`: numbers of pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    _others: [u64; 4],
}

/// Returns `true` if the page cache has all pages of an extent. A page may still be on its way from the disk.
///
/// Returns `false` if the kernel does not support `cachestat` (before Linux 6.5), or answers it only to the owner of
/// the file.
pub(crate) fn has_all_pages(file: &File, extent: Extent) -> bool {
    let range = CachestatRange { offset: extent.offset(), len: extent.len() };
    let mut counts = Cachestat::default();
    let flags: c_uint = 0;
    // SAFETY: the descriptor is open while the file is borrowed; the call reads the first structure and writes the
    // second, which have the layout of the kernel's and live until it returns.
    let result =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, flags) };
    // SAFETY: the call takes a number and returns one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = u64::try_from(page).ok().filter(|page| *page > 0) else { return false };
    let pages = extent.end().div_ceil(page).saturating_sub(extent.offset() / page);
    result == 0 && counts.cached >= pages
}

/// Returns freed memory to the system: blocks below 1 MiB, which glibc keeps in its arenas, up to eight for each
/// processor. Larger ones are returned when they are freed: see [`unmap_large_blocks_when_freed`]. Other allocators
/// return memory themselves.
pub(crate) fn trim_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number, and locks what it changes.
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
    fn written_pages_are_cached_and_those_after_the_end_are_not() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 5 << 12], 0).unwrap();
        let has = |offset, len| has_all_pages(&file, Extent::new(offset, len).unwrap());
        if !has(0, 1) {
            eprintln!("SKIPPED: this kernel or file system has no cachestat");
            return;
        }
        assert!(has(0, 5 << 12) && has(4095, 2) && has((5 << 12) - 1, 1));
        assert!(!has(0, 1 << 20) && !has(1 << 20, 1));
        // A hole has no page until a process reads it.
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
        // The pages of tmpfs cannot be dropped.
        const TMPFS: u64 = 0x0102_1994;
        assert!(has_lost_any || u64::try_from(rustix::fs::fstatfs(&file).unwrap().f_type) == Ok(TMPFS));
    }
}
