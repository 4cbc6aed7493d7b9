//! The checkpoint's `config.json`, and the Eagle config beside it (cut at the first zero byte): refused, or a geometry that holds together.
#![no_main]

use gr00t_host::ModelConfig;
use gr00t_host::config::{EagleConfig, Gr00tConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let (gr00t, eagle) = bytes.split_at(cut);
    let gr00t = if gr00t.is_empty() { Ok(Gr00tConfig::default()) } else { serde_json::from_slice(gr00t) };
    let eagle = match eagle {
        [] | [_] => Ok(EagleConfig::default()),
        [_, eagle @ ..] => serde_json::from_slice(eagle),
    };
    if let (Ok(gr00t), Ok(eagle)) = (gr00t, eagle)
        && let Err(error) = ModelConfig::new(gr00t, eagle)
    {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
});
