//! The prompt: chat text and tokenizer.
