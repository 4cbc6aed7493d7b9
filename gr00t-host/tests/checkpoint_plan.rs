//! The expected tensors of a configuration against NVIDIA's state dict (list of 899 names and shapes) and the
//! headers of the tiny checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::{Part, SafetensorsFile, TensorSource, expected_tensors};

fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is absent", path.display());
    None
}

fn shapes(config: &ModelConfig) -> BTreeMap<String, Vec<usize>> {
    expected_tensors(config).into_iter().map(|t| (t.name, t.shape)).collect()
}

#[test]
fn n1_5_has_the_tensors_of_the_published_checkpoint() {
    let Some(path) = shared("facts/state_dict_manifest.tsv") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let manifest: BTreeMap<String, Vec<usize>> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split('\t');
            let (name, shape) = (fields.next().unwrap(), fields.next().unwrap());
            (name.to_owned(), shape.split('x').map(|n| n.parse().unwrap()).collect())
        })
        .collect();
    assert_eq!(manifest.len(), 899);
    assert_eq!(shapes(&ModelConfig::n1_5()), manifest);
}

#[test]
fn n1_5_parts_have_the_published_sizes() {
    let expected = expected_tensors(&ModelConfig::n1_5());
    let size = |part: Part| {
        let of_part = expected.iter().filter(|t| t.part == part);
        let elements: usize = of_part.clone().map(|t| t.shape.iter().product::<usize>()).sum();
        (of_part.count(), elements)
    };
    assert_eq!(size(Part::Vision), (437, 412_442_352));
    assert_eq!(size(Part::VisionHead), (11, 15_238_352));
    assert_eq!(size(Part::Connector), (2, 2_361_344));
    assert_eq!(size(Part::Llm), (133, 604_034_048));
    assert_eq!(size(Part::TokenEmbedding), (1, 310_640_640));
    assert_eq!(size(Part::LmHead), (1, 310_640_640));
    assert_eq!(size(Part::Dit), (232, 550_386_688));
    assert_eq!(size(Part::Adapter), (64, 201_433_088));
    assert_eq!(size(Part::ActionHead), (18, 316_986_368));
    assert_eq!(expected.iter().filter(|t| t.needed).count(), 887);
}

#[test]
fn tiny_has_the_tensors_of_its_checkpoint() {
    let Some(dir) = shared("golden/tiny/a") else { return };
    let config =
        ModelConfig::from_files(dir.join("config.json"), Some(&dir.join("eagle_config.json"))).unwrap();
    let file = SafetensorsFile::open(dir.join("model.safetensors")).unwrap();
    let stored: BTreeMap<String, Vec<usize>> =
        file.names().into_iter().map(|name| (name.clone(), file.info(&name).unwrap().shape)).collect();
    assert_eq!(shapes(&config), stored);
}

#[test]
fn the_mini_preset_is_the_mini_golden() {
    let Some(dir) = shared("golden/mini/gr1") else { return };
    let config =
        ModelConfig::from_files(dir.join("config.json"), Some(&dir.join("eagle_config.json"))).unwrap();
    assert_eq!(shapes(&config), shapes(&ModelConfig::mini()));
    let elements: usize = shapes(&config).values().map(|shape| shape.iter().product::<usize>()).sum();
    assert!((45_000_000..55_000_000).contains(&elements), "{elements}");
}

#[test]
fn the_largest_accepted_sizes_do_not_overflow() {
    const MAX: usize = 1 << 20;
    let mut config = ModelConfig::n1_5();
    let head = &mut config.gr00t.action_head_cfg;
    head.max_num_embodiments = MAX;
    head.max_seq_len = MAX;
    head.max_state_dim = MAX;
    head.hidden_size = MAX;
    head.diffusion_model_cfg.output_dim = MAX;
    config.eagle.force_image_size = MAX;
    config.eagle.vision_config.image_size = MAX;
    config.eagle.vision_config.patch_size = MAX;
    config.eagle.vision_config.hidden_size = MAX;
    config.eagle.vision_config.intermediate_size = MAX;
    config.eagle.text_config.head_dim = MAX;
    config.eagle.text_config.num_attention_heads = MAX;
    config.eagle.text_config.num_key_value_heads = MAX;
    config.eagle.text_config.vocab_size = MAX;
    let config = ModelConfig::new(config.gr00t, config.eagle).unwrap();
    for tensor in expected_tensors(&config) {
        let bytes = tensor.shape.iter().try_fold(4_usize, |product, &n| product.checked_mul(n));
        assert!(bytes.is_some(), "{} {:?}", tensor.name, tensor.shape);
    }
    let mut endless = ModelConfig::n1_5();
    endless.eagle.vision_config.num_hidden_layers = MAX;
    let error = ModelConfig::new(endless.gr00t, endless.eagle).unwrap_err().to_string();
    assert_eq!(error, "config: vision_config.num_hidden_layers is 1048576, wanted 1 to 1024");
}
