//! Model configuration: presets, files, contradictions.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is its assertion")]

use std::path::Path;

use gr00t_host::ModelConfig;
use gr00t_host::config::{DiffusionModelConfig, EagleConfig, Gr00tConfig};

fn refused(change: impl FnOnce(&mut Gr00tConfig, &mut EagleConfig)) -> String {
    let ModelConfig { mut gr00t, mut eagle } = ModelConfig::n1_5();
    change(&mut gr00t, &mut eagle);
    ModelConfig::new(gr00t, eagle).unwrap_err().to_string()
}

#[test]
fn presets_are_consistent() {
    for preset in ["n1.5", "mini"] {
        let ModelConfig { gr00t, eagle } = ModelConfig::preset(preset).unwrap();
        ModelConfig::new(gr00t, eagle).unwrap();
    }
    assert!(ModelConfig::preset("n1.6").is_err());
}

#[test]
fn n1_5_has_the_published_sizes() {
    let ModelConfig { gr00t, eagle } = ModelConfig::n1_5();
    assert_eq!(eagle.tokens_per_view(), 256);
    assert_eq!(eagle.vision_config.head_dim(), 72);
    assert_eq!(gr00t.action_head_cfg.diffusion_model_cfg.inner_dim(), 1536);
    assert_eq!(gr00t.action_head_cfg.vl_self_attention_cfg.inner_dim(), 2048);
}

#[test]
fn mini_preset_equals_the_golden_cases_config() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden/mini/gr1");
    if !folder.exists() {
        println!("skipped: {} is absent", folder.display());
        return;
    }
    let eagle = folder.join("eagle_config.json");
    let from_files = ModelConfig::from_files(folder.join("config.json"), Some(&eagle)).unwrap();
    assert_eq!(from_files, ModelConfig::mini());
}

#[test]
fn missing_fields_take_n1_5s_values() {
    let gr00t: Gr00tConfig = serde_json::from_str(r#"{"model_type": "gr00t_n1_5"}"#).unwrap();
    assert_eq!(gr00t, Gr00tConfig::default());
}

#[test]
fn every_contradiction_is_listed() {
    let message = refused(|gr00t, eagle| {
        gr00t.action_horizon = 8;
        eagle.text_config.num_key_value_heads = 3;
    });
    assert!(message.contains("action_horizon is 8"), "{message}");
    assert!(message.contains("16 is not a multiple of 3"), "{message}");
}

#[test]
fn sizes_of_zero_or_beyond_reason_are_refused_before_they_are_multiplied() {
    assert!(refused(|_, eagle| eagle.vision_config.patch_size = 0).contains("patch_size is 0"));
    assert!(refused(|gr00t, _| gr00t.action_horizon = usize::MAX).contains("action_horizon"));
}

#[test]
fn features_that_n1_5_lacks_are_refused_by_name() {
    assert!(refused(|_, eagle| eagle.use_pixel_shuffle = true).contains("use_pixel_shuffle"));
    assert!(refused(|gr00t, _| gr00t.model_type = "gr00t_n1_6".into()).contains("gr00t_n1_6"));
    assert!(refused(|gr00t, _| gr00t.backbone_cfg.project_to_dim = Some(1536)).contains("project_to_dim"));
}

#[test]
fn settings_that_would_change_the_results_are_refused_and_not_passed_over() {
    assert!(refused(|_, eagle| eagle.text_config.use_sliding_window = true).contains("use_sliding_window"));
    let scaled = |_: &mut Gr00tConfig, eagle: &mut EagleConfig| {
        eagle.text_config.rope_scaling = Some(serde_json::json!({"type": "yarn", "factor": 4.0}));
    };
    assert!(refused(scaled).contains("rope_scaling is set"));
    assert!(
        refused(|gr00t, _| dit(gr00t).activation_fn = "geglu".into()).contains("activation_fn is \"geglu\"")
    );
    assert!(
        refused(|gr00t, _| dit(gr00t).attention_bias = false).contains("diffusion_model_cfg.attention_bias")
    );
    assert!(refused(|gr00t, _| dit(gr00t).norm_eps = 1e-6).contains("norm_eps is 1e-6, N1.5 has 1e-5"));
    assert!(
        refused(|gr00t, _| dit(gr00t).norm_elementwise_affine = true).contains("norm_elementwise_affine")
    );
}

#[test]
fn constants_that_give_no_numbers_are_refused() {
    for eps in [0.0, -1e-6, f64::NAN, 1.0] {
        assert!(refused(|_, eagle| eagle.text_config.rms_norm_eps = eps).contains("rms_norm_eps is"));
        assert!(refused(|_, eagle| eagle.vision_config.layer_norm_eps = eps).contains("layer_norm_eps is"));
    }
    for theta in [0.0, -1e6, f64::INFINITY] {
        assert!(refused(|_, eagle| eagle.text_config.rope_theta = theta).contains("rope_theta is"));
    }
}

fn dit(gr00t: &mut Gr00tConfig) -> &mut DiffusionModelConfig {
    &mut gr00t.action_head_cfg.diffusion_model_cfg
}
