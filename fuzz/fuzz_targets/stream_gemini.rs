#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| segno_fuzz_targets::stream("gemini", data));
