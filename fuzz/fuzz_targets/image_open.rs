//! Untrusted images. Opening an image, and every operation on it, must not panic, hang or use too much memory.

#![no_main]

use isogen::BaseImage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some(source) = isogen_fuzz::decode_image(input) else { return };
    match BaseImage::from_source(source) {
        Ok(image) => isogen_fuzz::run_operations(&image, input[0]),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
