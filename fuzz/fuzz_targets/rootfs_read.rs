//! Untrusted root file systems. A file in them can be read twice with the same result, and its length is within the
//! limit.

#![no_main]

use isogen_fuzz::open_rootfs;
use libfuzzer_sys::fuzz_target;

/// Maximum length of a file, in bytes.
const MAX_FILE_LEN: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let Ok(opened) = open_rootfs(input) else { return };
    let program = opened.nmstatectl();
    if let Ok(program) = &program {
        assert!(program.len() <= MAX_FILE_LEN);
        assert_eq!(*program, opened.nmstatectl().unwrap());
    }
    for path in ["usr/bin/nmstatectl", "ostree/deploy", "ostree/deploy/rhcos/deploy/1.0/usr/bin/large"] {
        let _ = opened.read(path);
    }
});
