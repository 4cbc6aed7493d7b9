//! The prompt: an instruction and a number of camera views become chat text and token ids.
//!
//! Mirrors NVIDIA's `Gr00tPolicy` and Eagle processor (`chat_template.json`, `processing_eagle2_5_vl.py`):
//!
//! ```text
//! <|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n
//! <image 1><img><IMG_CONTEXT>×256</img> … T <|im_end|>\n<|im_start|>assistant\n
//! ```
//!
//! `T` is the instruction in one of two [`InstructionForm`]s. Unlike upstream, text in it that looks like a special
//! token or a media placeholder is ordinary text, unless [`PromptOptions::allow_special`] is set.

mod batch;
mod chat;
mod printable;
mod python_repr;
mod special;
mod tokenizer;

pub use batch::left_pad;
pub use python_repr::python_repr;
pub use special::{IMAGE_TOKEN_ID, PAD_TOKEN_ID};
pub use tokenizer::Tokenizer;

use crate::{Error, Result};

/// What upstream says where an observation has no instruction.
pub const DEFAULT_INSTRUCTION: &str = "Perform the default behavior.";
/// Longest instruction, in characters.
pub const MAX_INSTRUCTION_CHARS: usize = 2000;
/// Most image tokens of one prompt: 64 views of 64 × 64 patches.
const MAX_IMAGE_TOKENS: usize = 64 * 64 * 64;

/// How the instruction stands in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstructionForm {
    /// `['…']`, a printed Python list: what NVIDIA's policy sends at inference.
    #[default]
    PyList,
    /// The text itself: what the model saw in training.
    Plain,
}

/// How an instruction is turned into a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptOptions {
    /// Form of the instruction.
    pub form: InstructionForm,
    /// Upstream's behaviour: special tokens inside the instruction are live, media placeholders are errors.
    pub allow_special: bool,
}

/// A prompt, ready for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The chat with `<image-k>` in place of each view.
    pub text: String,
    /// The instruction as it stands in the chat.
    pub language: String,
    /// Tokens `[S]`, `views × tokens_per_view` of them image tokens.
    pub input_ids: Vec<u32>,
    /// Tokens of `language` alone.
    pub instruction_tokens: usize,
}

impl Tokenizer {
    /// The prompt for an instruction and `views` camera views of `tokens_per_view` image tokens each, which have the
    /// id `image_token_index`. Without an instruction it is [`DEFAULT_INSTRUCTION`], plain in either form.
    ///
    /// The number of tokens is the caller's to bound; nothing is truncated.
    ///
    /// ```
    /// use gr00t_host::prompt::{IMAGE_TOKEN_ID, PromptOptions, Tokenizer};
    ///
    /// let prompt = Tokenizer::qwen2()
    ///     .prompt(Some("pick up the red apple"), 1, 256, IMAGE_TOKEN_ID, &PromptOptions::default())?;
    /// assert_eq!(prompt.language, "['pick up the red apple']");
    /// assert_eq!(prompt.input_ids.len(), 289);
    /// # Ok::<(), gr00t_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no views or too many image tokens, if the instruction is longer than
    /// [`MAX_INSTRUCTION_CHARS`], or if its own tokens include the image token. With
    /// [`PromptOptions::allow_special`], also if it holds a media placeholder: upstream fails on one without a view
    /// and otherwise adds a copy of the view, which here would not match the images.
    pub fn prompt(
        &self,
        instruction: Option<&str>,
        views: usize,
        tokens_per_view: usize,
        image_token_index: u32,
        options: &PromptOptions,
    ) -> Result<Prompt> {
        check_image_tokens(views, tokens_per_view)?;
        let language = language(instruction, options.form)?;
        let language_ids = if options.allow_special {
            if let Some(placeholder) = chat::find_placeholder(&language) {
                return Err(Error::Prompt(format!(
                    "the instruction holds {placeholder}, which is not one of its views"
                )));
            }
            self.encode_with_special(&language)?
        } else {
            self.encode(&language)?
        };

        let mut input_ids = chat::OPENING_IDS.to_vec();
        for view in 1..=views {
            input_ids.extend(self.encode(&chat::view_label(view))?);
            input_ids.push(special::IMAGE_START_ID);
            input_ids.resize(input_ids.len() + tokens_per_view, image_token_index);
            input_ids.push(special::IMAGE_END_ID);
        }
        input_ids.extend_from_slice(&language_ids);
        input_ids.extend_from_slice(&chat::CLOSING_IDS);
        let image_tokens =
            input_ids.iter().filter(|id| [image_token_index, IMAGE_TOKEN_ID].contains(id)).count();
        if image_tokens != views * tokens_per_view {
            return Err(Error::Prompt(format!(
                "{image_tokens} image tokens for {views} views of {tokens_per_view}: the text has some of its own"
            )));
        }
        let text = chat::render(views, &language);
        Ok(Prompt { text, language, input_ids, instruction_tokens: language_ids.len() })
    }
}

fn check_image_tokens(views: usize, tokens_per_view: usize) -> Result<()> {
    match views.checked_mul(tokens_per_view) {
        Some(1..=MAX_IMAGE_TOKENS) => Ok(()),
        _ => Err(Error::Prompt(format!(
            "{views} views of {tokens_per_view} image tokens, wanted 1 to {MAX_IMAGE_TOKENS} in all"
        ))),
    }
}

fn language(instruction: Option<&str>, form: InstructionForm) -> Result<String> {
    let Some(instruction) = instruction else { return Ok(DEFAULT_INSTRUCTION.to_owned()) };
    let chars = instruction.chars().count();
    if chars > MAX_INSTRUCTION_CHARS {
        return Err(Error::Prompt(format!(
            "instruction of {chars} characters, wanted at most {MAX_INSTRUCTION_CHARS}"
        )));
    }
    Ok(match form {
        InstructionForm::PyList => python_repr::python_list(instruction),
        InstructionForm::Plain => instruction.to_owned(),
    })
}
