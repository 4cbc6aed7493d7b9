//! The special tokens of the GR00T N1.5 tokenizer: Qwen3's 26 and the 11 that Eagle 2.5 adds.

/// Pads batches; ends a text in Qwen's training.
pub const PAD_TOKEN_ID: u32 = 151_643;
/// `<|im_start|>`, which opens a message.
pub(super) const IM_START_ID: u32 = 151_644;
/// `<|im_end|>`, which closes one.
pub(super) const IM_END_ID: u32 = 151_645;
/// `<IMG_CONTEXT>`, the placeholder that image features replace.
pub const IMAGE_TOKEN_ID: u32 = 151_669;
/// `<img>`, before the placeholders of one view.
pub(super) const IMAGE_START_ID: u32 = 151_670;
/// `</img>`, after them.
pub(super) const IMAGE_END_ID: u32 = 151_671;

/// Those without which no prompt can be built.
pub(super) const REQUIRED: [u32; 6] =
    [PAD_TOKEN_ID, IM_START_ID, IM_END_ID, IMAGE_TOKEN_ID, IMAGE_START_ID, IMAGE_END_ID];

/// Text of the special tokens by id, from [`PAD_TOKEN_ID`] upwards without a gap.
pub(super) const SPECIAL_TOKENS: [&str; 37] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
    "<IMG_CONTEXT>",
    "<img>",
    "</img>",
    "<box>",
    "</box>",
    "<quad>",
    "</quad>",
    "<ref>",
    "</ref>",
    "<interval>",
    "</interval>",
];

/// One special token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpecialToken {
    pub(super) content: String,
    pub(super) id: u32,
}

/// The built-in ones.
pub(super) fn built_in() -> Vec<SpecialToken> {
    SPECIAL_TOKENS
        .iter()
        .zip(PAD_TOKEN_ID..)
        .map(|(content, id)| SpecialToken { content: (*content).to_owned(), id })
        .collect()
}

/// A stretch of text between special tokens, or one of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    Text(&'a str),
    Special(u32),
}

/// Splits `text` at special tokens: leftmost first, the longest where several begin at one place. Raw text, before
/// Unicode normalisation. Empty stretches are left out.
pub(super) fn split<'a>(text: &'a str, special: &[SpecialToken]) -> Vec<Segment<'a>> {
    let mut segments = Vec::new();
    let mut rest = text;
    while let Some((start, token)) = first_match(rest, special) {
        let (before, from) = rest.split_at(start);
        if !before.is_empty() {
            segments.push(Segment::Text(before));
        }
        segments.push(Segment::Special(token.id));
        rest = from.strip_prefix(token.content.as_str()).unwrap_or_default();
    }
    if !rest.is_empty() {
        segments.push(Segment::Text(rest));
    }
    segments
}

fn first_match<'s>(text: &str, special: &'s [SpecialToken]) -> Option<(usize, &'s SpecialToken)> {
    special
        .iter()
        .filter(|token| !token.content.is_empty())
        .filter_map(|token| text.find(token.content.as_str()).map(|start| (start, token)))
        .min_by_key(|(start, token)| (*start, std::cmp::Reverse(token.content.len())))
}

#[cfg(test)]
mod tests {
    use super::{Segment, SpecialToken, built_in, split};

    #[test]
    fn ids_are_those_of_the_checkpoints_tokenizer() {
        // Landmarks of NVIDIA's added_tokens.json for N1.5.
        let id = |text: &str| built_in().iter().find(|token| token.content == text).map(|token| token.id);
        assert_eq!(id("<|endoftext|>"), Some(151_643));
        assert_eq!(id("<tool_call>"), Some(151_657));
        assert_eq!(id("<|file_sep|>"), Some(151_664));
        assert_eq!(id("</think>"), Some(151_668));
        assert_eq!(id("<IMG_CONTEXT>"), Some(151_669));
        assert_eq!(id("<box>"), Some(151_672));
        assert_eq!(id("</interval>"), Some(151_679));
    }

    #[test]
    fn longest_of_the_leftmost_wins() {
        let token = |content: &str, id| SpecialToken { content: content.into(), id };
        let special = [token("<a>", 1), token("<a><b>", 2), token("", 3)];
        assert_eq!(
            split("x<a><b><a>é", &special),
            [Segment::Text("x"), Segment::Special(2), Segment::Special(1), Segment::Text("é")]
        );
        assert_eq!(split("", &special), []);
    }
}
