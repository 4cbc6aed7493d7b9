//! The Qwen2 tokenizer, built in or from a folder's `tokenizer.json`.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::chat::{CLOSING, CLOSING_IDS, OPENING, OPENING_IDS};
use super::special::{self, PAD_TOKEN_ID, REQUIRED, SPECIAL_TOKENS, Segment, SpecialToken};
use crate::{Error, Result, read_capped};

/// Largest `tokenizer.json` that is read; Qwen3's has 11 MB.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The file that [`Tokenizer::for_folder`] looks for.
const FILE_NAME: &str = "tokenizer.json";

/// Turns text into token ids. Cheap to clone, shared between threads.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

struct Inner {
    vocabulary: Vocabulary,
    special: Vec<SpecialToken>,
}

/// Encodes text in which special tokens mean nothing.
enum Vocabulary {
    /// `voyage3_base`, whose 151,643 entries, pre-tokenisation and NFC are Qwen2's.
    BuiltIn(&'static bpe_openai::Tokenizer),
    /// A `tokenizer.json` without its added tokens.
    File(Box<tokenizers::Tokenizer>),
}

/// One entry of `added_tokens` in a `tokenizer.json`.
#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the file's own fields")]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
}

impl Tokenizer {
    /// The built-in tokenizer with Qwen3's and Eagle's special tokens.
    pub fn qwen2() -> Self {
        static BUILT_IN: OnceLock<Tokenizer> = OnceLock::new();
        BUILT_IN
            .get_or_init(|| Self {
                inner: Arc::new(Inner {
                    vocabulary: Vocabulary::BuiltIn(bpe_openai::voyage3_base()),
                    special: special::built_in(),
                }),
            })
            .clone()
    }

    /// Reads a `tokenizer.json` of Hugging Face's `tokenizers`.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than 64 MiB or is no tokenizer; if a special token of the prompt is
    /// missing or has another id than the model was trained with; or if the chat text does not give Qwen2's tokens.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let parse = |what: String| Error::Parse { path: path.to_path_buf(), what };
        let bytes = read_capped(path, MAX_FILE_BYTES)?;
        let mut json: Value = serde_json::from_slice(&bytes).map_err(|e| parse(e.to_string()))?;
        let special = take_special(&mut json).map_err(parse)?;
        let stripped = serde_json::to_vec(&json).map_err(|e| parse(e.to_string()))?;
        let vocabulary = tokenizers::Tokenizer::from_bytes(stripped).map_err(|e| parse(one_line(&e)))?;
        let inner = Inner { vocabulary: Vocabulary::File(Box::new(vocabulary)), special };
        let tokenizer = Self { inner: Arc::new(inner) };
        for (text, want) in [(OPENING, &OPENING_IDS[..]), (CLOSING, &CLOSING_IDS[..])] {
            let got = tokenizer.encode_with_special(text)?;
            if got != want {
                return Err(parse(format!(
                    "not Qwen2's vocabulary: {text:?} gives {got:?}, wanted {want:?}"
                )));
            }
        }
        Ok(tokenizer)
    }

    /// The tokenizer of a checkpoint folder: its `tokenizer.json` where there is one, else [`Tokenizer::qwen2`].
    ///
    /// # Errors
    /// As [`Tokenizer::from_file`]; a file that is there but unusable is not skipped.
    pub fn for_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let path = folder.as_ref().join(FILE_NAME);
        // also true for a dangling link, which is then an error
        if path.symlink_metadata().is_ok() { Self::from_file(path) } else { Ok(Self::qwen2()) }
    }

    /// Whether this is the built-in vocabulary rather than a file's.
    pub fn is_built_in(&self) -> bool {
        matches!(self.inner.vocabulary, Vocabulary::BuiltIn(_))
    }

    /// Tokens of `text`; what looks like a special token is ordinary characters.
    ///
    /// # Errors
    /// If a tokenizer from a file fails, or gives the id of a special token for ordinary text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let ids = match &self.inner.vocabulary {
            Vocabulary::BuiltIn(bpe) => bpe.encode(text),
            Vocabulary::File(tokenizer) => {
                let encoding = tokenizer.encode_fast(text, false).map_err(|e| Error::Prompt(one_line(&e)))?;
                encoding.get_ids().to_vec()
            }
        };
        match ids.iter().find(|id| self.inner.special.iter().any(|token| token.id == **id)) {
            Some(id) => {
                Err(Error::Prompt(format!("the tokenizer gives the special token {id} for ordinary text")))
            }
            None => Ok(ids),
        }
    }

    /// Tokens of `text`, in which special tokens are live.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_with_special(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for segment in special::split(text, &self.inner.special) {
            match segment {
                Segment::Text(text) => ids.extend(self.encode(text)?),
                Segment::Special(id) => ids.push(id),
            }
        }
        Ok(ids)
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.is_built_in() { "built-in" } else { FILE_NAME };
        f.debug_struct("Tokenizer").field("vocabulary", &source).finish_non_exhaustive()
    }
}

/// Takes the added tokens out of a tokenizer's JSON, so that the rest treats their text as ordinary, and checks them.
/// Padding, truncation, templates and decoding go as well: the prompt is built here.
fn take_special(json: &mut Value) -> Result<Vec<SpecialToken>, String> {
    let Some(object) = json.as_object_mut() else { return Err("not a JSON object".into()) };
    let added = object.insert("added_tokens".into(), Value::Array(Vec::new())).unwrap_or_default();
    for part in ["truncation", "padding", "post_processor", "decoder"] {
        object.insert(part.into(), Value::Null);
    }
    let added: Vec<AddedToken> = serde_json::from_value(added).map_err(|e| format!("added_tokens: {e}"))?;
    for token in &added {
        if token.single_word || token.lstrip || token.rstrip || token.normalized {
            let content = &token.content;
            return Err(format!(
                "added token {content:?}: single_word, lstrip, rstrip, normalized must be false"
            ));
        }
    }
    for (content, id) in SPECIAL_TOKENS.iter().zip(PAD_TOKEN_ID..) {
        match added.iter().find(|token| token.content == *content) {
            Some(token) if token.id == id => {}
            Some(token) => return Err(format!("special token {content}: got id {}, wanted {id}", token.id)),
            None if REQUIRED.contains(&id) => {
                return Err(format!("special token {content} ({id}) is missing"));
            }
            None => {}
        }
    }
    Ok(added.into_iter().map(|AddedToken { id, content, .. }| SpecialToken { content, id }).collect())
}

/// Another library's error as one line.
fn one_line(error: &impl fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
