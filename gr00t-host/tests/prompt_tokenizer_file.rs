//! Tokenizers from a folder's `tokenizer.json`. The files are excerpts of Qwen2's vocabulary, made from the built-in
//! one: the tokens of a few prompts and what those are merged from.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use bpe_openai::voyage3_base;
use gr00t_host::prompt::{IMAGE_TOKEN_ID, PAD_TOKEN_ID, Prompt, PromptOptions, Tokenizer};
use serde_json::{Value, json};

const INSTRUCTIONS: [&str; 3] = [
    "pick up the red apple and don't drop it",
    "cafe\u{301} 把红苹果放到篮子里 \u{a0}👨\u{200d}👩",
    "<|im_end|> <think>",
];
/// Number of single-byte tokens; they have the lowest ids.
const BYTES: u32 = 256;

/// GPT-2's printable stand-in for a byte: the visible Latin-1 characters for themselves, the rest from U+0100 on.
fn stand_in(byte: u8) -> char {
    let visible = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    let hidden_before = (0..byte).filter(|b| !visible(*b)).count() as u32;
    if visible(byte) { char::from(byte) } else { char::from_u32(256 + hidden_before).expect("a character") }
}

fn printable(bytes: &[u8]) -> String {
    bytes.iter().map(|b| stand_in(*b)).collect()
}

/// The two tokens that byte-pair encoding merges last to make token `id`: what the tokens of lower id make of it.
fn merged_from(id: u32, ids: &HashMap<Vec<u8>, u32>, bytes: &[u8]) -> (u32, u32) {
    let mut parts: Vec<Vec<u8>> = bytes.iter().map(|b| vec![*b]).collect();
    while parts.len() > 2 {
        let pair = |at: usize| ids.get(&parts[at..at + 2].concat()).copied().filter(|pair| *pair < id);
        let (_, at) =
            (0..parts.len() - 1).filter_map(|at| Some((pair(at)?, at))).min().expect("a lower pair");
        let right = parts.remove(at + 1);
        parts[at].extend(right);
    }
    (ids[&parts[0]], ids[&parts[1]])
}

fn prompt(tokenizer: &Tokenizer, instruction: &str, allow_special: bool) -> Prompt {
    let options = PromptOptions { allow_special, ..PromptOptions::default() };
    tokenizer.prompt(Some(instruction), 2, 3, IMAGE_TOKEN_ID, &options).expect("a prompt")
}

/// A `tokenizer.json` that gives the whole vocabulary's prompts for [`INSTRUCTIONS`].
fn excerpt() -> Value {
    let bpe = &voyage3_base().bpe;
    let all = 0..bpe.num_tokens() as u32;
    let ids: HashMap<Vec<u8>, u32> = all.map(|id| (bpe.token_bytes(id).to_vec(), id)).collect();
    let mut wanted: Vec<u32> = (0..BYTES).collect();
    for instruction in INSTRUCTIONS {
        for allow_special in [false, true] {
            let prompt = prompt(&Tokenizer::qwen2(), instruction, allow_special);
            wanted.extend(prompt.input_ids.into_iter().filter(|id| *id < PAD_TOKEN_ID));
        }
    }
    let (mut vocab, mut merges) = (BTreeMap::new(), BTreeSet::new());
    while let Some(id) = wanted.pop() {
        let bytes = bpe.token_bytes(id);
        if vocab.insert(printable(bytes), id).is_none() && id >= BYTES {
            let (left, right) = merged_from(id, &ids, bytes);
            wanted.extend([left, right]);
            merges.insert((id, [left, right].map(|part| printable(bpe.token_bytes(part)))));
        }
    }
    let merges: Vec<_> = merges.into_iter().map(|(_, merge)| merge).collect();
    let pattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    let added: Vec<Value> = [
        ("<|endoftext|>", 151_643),
        ("<|im_start|>", 151_644),
        ("<|im_end|>", 151_645),
        ("<IMG_CONTEXT>", 151_669),
        ("<img>", 151_670),
        ("<think>", 151_667),
        ("</img>", 151_671),
    ]
    .iter()
    .map(|(content, id)| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    })
    .collect();
    json!({
        "version": "1.0", "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": null, "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]},
        "post_processor": null, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": merges}
    })
}

fn write(folder: &Path, json: &Value) {
    fs::write(folder.join("tokenizer.json"), json.to_string()).expect("written");
}

/// The one-line error for `json` as a folder's tokenizer.
fn refusal(json: &Value) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), json);
    let message = Tokenizer::for_folder(folder.path()).expect_err("refused").to_string();
    assert!(message.contains("tokenizer.json") && !message.contains('\n'), "{message}");
    message
}

#[test]
fn folders_tokenizer_gives_the_built_in_ones_prompts() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &excerpt());
    let file = Tokenizer::for_folder(folder.path()).expect("a tokenizer");
    assert!(!file.is_built_in());
    for instruction in INSTRUCTIONS {
        for allow_special in [false, true] {
            let want = prompt(&Tokenizer::qwen2(), instruction, allow_special);
            assert_eq!(prompt(&file, instruction, allow_special), want);
        }
    }
}

#[test]
fn folder_without_a_tokenizer_gets_the_built_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(Tokenizer::for_folder(folder.path()).expect("a tokenizer").is_built_in());
}

#[test]
fn missing_moved_or_greedy_special_tokens_are_refused_by_name() {
    let change = |edit: &dyn Fn(&mut Vec<Value>)| {
        let mut json = excerpt();
        edit(json["added_tokens"].as_array_mut().expect("added tokens"));
        refusal(&json)
    };
    let message = change(&|added| added.retain(|token| token["content"] != "<img>"));
    assert!(message.ends_with("special token <img> (151670) is missing"), "{message}");
    let message = change(&|added| added[3]["id"] = json!(151_665));
    assert!(message.ends_with("special token <IMG_CONTEXT>: got id 151665, wanted 151669"), "{message}");
    let message = change(&|added| added[0]["rstrip"] = json!(true));
    assert!(message.contains("\"<|endoftext|>\""), "{message}");
    let message = change(&|added| added[0]["id"] = json!(-1));
    assert!(message.contains("added_tokens"), "{message}");
}

#[test]
fn another_vocabulary_is_refused() {
    let mut json = excerpt();
    let vocab = json["model"]["vocab"].as_object_mut().expect("a vocabulary");
    vocab["system"] = json!(9000);
    let message = refusal(&json);
    assert!(message.contains("not Qwen2's vocabulary"), "{message}");
}

#[test]
fn files_that_are_no_tokenizer_are_refused() {
    for json in [json!([]), json!({}), json!({"added_tokens": []}), json!("text"), json!(null)] {
        refusal(&json);
    }
    let mut json = excerpt();
    json["model"]["merges"] = json!([["no", "such"]]);
    refusal(&json);
    let folder = tempfile::tempdir().expect("a folder");
    for text in ["", "{", "\u{feff}{}", &"[".repeat(100_000)] {
        fs::write(folder.path().join("tokenizer.json"), text).expect("written");
        assert!(Tokenizer::for_folder(folder.path()).is_err(), "{}", text.len());
    }
}

#[test]
fn oversized_file_is_refused_for_its_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = fs::File::create(folder.path().join("tokenizer.json")).expect("a file");
    file.set_len((64 << 20) + 1).expect("a sparse file");
    let message = Tokenizer::for_folder(folder.path()).expect_err("too large").to_string();
    assert!(message.contains("more than 67108864 bytes"), "{message}");
}

#[cfg(unix)]
#[test]
fn dangling_link_is_an_error_rather_than_the_built_in_tokenizer() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(folder.path().join("gone"), folder.path().join("tokenizer.json"))
        .expect("a link");
    assert!(Tokenizer::for_folder(folder.path()).is_err());
}
