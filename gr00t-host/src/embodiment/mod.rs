//! Embodiments: tags, metadata (statistics and modalities), data configs.
