//! Root file systems that nobody vouches for: what is found in one is a file within its limit, and the same each time.

#![no_main]

use isogen_fuzz::rootfs;
use libfuzzer_sys::fuzz_target;

/// Bytes that the largest file may have.
const MAX_FILE: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let Ok(opened) = rootfs(input) else { return };
    let program = opened.nmstatectl();
    if let Ok(program) = &program {
        assert!(program.len() <= MAX_FILE);
        assert_eq!(*program, opened.nmstatectl().unwrap());
    }
    for path in ["usr/bin/nmstatectl", "ostree/deploy", "ostree/deploy/rhcos/deploy/1.0/usr/bin/large"] {
        let _ = opened.read(path);
    }
});
