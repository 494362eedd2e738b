//! Scanner and meters, fed whatever the fuzzer thinks of. A broken rule is a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgate_fuzz::{Case, check};

fuzz_target!(|input: &[u8]| {
    if let Some(case) = Case::of(input) {
        check(&case);
    }
});
