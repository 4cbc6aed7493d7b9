//! Small checkpoints for tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::write_synthetic;
use serde_json::{Map, Value, json};

/// N1.5 with everything small: about 0.3 million elements.
pub(crate) fn small_config() -> ModelConfig {
    let mut config = ModelConfig::mini();
    config.gr00t.hidden_size = 32;
    config.gr00t.backbone_cfg.select_layer = 2;
    let head = &mut config.gr00t.action_head_cfg;
    head.backbone_embedding_dim = 32;
    head.hidden_size = 24;
    head.input_embedding_dim = 32;
    head.max_num_embodiments = 3;
    head.max_seq_len = 32;
    head.diffusion_model_cfg.attention_head_dim = 16;
    head.diffusion_model_cfg.num_attention_heads = 2;
    head.diffusion_model_cfg.cross_attention_dim = 32;
    head.diffusion_model_cfg.num_layers = 2;
    head.diffusion_model_cfg.output_dim = 24;
    head.vl_self_attention_cfg.attention_head_dim = 16;
    head.vl_self_attention_cfg.num_attention_heads = 2;
    head.vl_self_attention_cfg.num_layers = 1;
    let vision = &mut config.eagle.vision_config;
    vision.hidden_size = 24;
    vision.intermediate_size = 40;
    vision.num_hidden_layers = 2;
    vision.num_attention_heads = 2;
    vision.image_size = 56;
    config.eagle.force_image_size = 56;
    config.eagle.image_token_index = 99;
    let text = &mut config.eagle.text_config;
    text.hidden_size = 32;
    text.intermediate_size = 48;
    text.head_dim = 16;
    text.vocab_size = 100;
    ModelConfig::new(config.gr00t, config.eagle).unwrap()
}

/// A folder of [`small_config`] with seed 5 below `parent`, in several shards.
pub(crate) fn small_folder(parent: &Path) -> PathBuf {
    let dir = parent.join("small");
    write_synthetic(&dir, &small_config(), 5, r#"{"gr1": {}}"#, 130_000, &mut |_, _| {
        ControlFlow::Continue(())
    })
    .unwrap();
    dir
}

/// Bytes of a safetensors file with this header and data.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// A safetensors file of tensors given by name, dtype, shape and data, one after the other.
pub(crate) fn safetensors_of(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        let entry: Value = json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
        header.insert((*name).to_owned(), entry);
        data.extend_from_slice(bytes);
    }
    safetensors(&Value::Object(header).to_string(), &data)
}

/// Rewrites the JSON file at `path`.
pub(crate) fn edit_json(path: &Path, edit: impl FnOnce(&mut Value)) {
    let mut json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    edit(&mut json);
    std::fs::write(path, json.to_string()).unwrap();
}
