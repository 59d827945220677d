//! Images that nobody vouches for: opening one, and everything that an open one offers, must not panic, hang or eat
//! memory.

#![no_main]

use isogen::BaseImage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some(source) = isogen_fuzz::image(input) else { return };
    match BaseImage::from_source(source) {
        Ok(image) => isogen_fuzz::reach(&image, input[0]),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
