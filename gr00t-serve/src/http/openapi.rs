//! `GET /openapi.json`: the routes, for tools that read such descriptions. A test compares it with the router.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use super::App;

/// Method, path, what it does, codes besides 200.
const ROUTES: [(&str, &str, &str, &[u16]); 9] = [
    ("get", "/", "The page", &[]),
    ("get", "/health", "starting or ok", &[]),
    ("get", "/v1/models", "The served model, once it is warm", &[503]),
    ("get", "/openapi.json", "This document", &[]),
    ("get", "/info", "Model, weights, device, keys, limits", &[401, 503]),
    ("get", "/demo", "A request to try, and the fp32 reference's actions", &[401, 503]),
    ("get", "/metrics", "Prometheus metrics", &[401]),
    (
        "post",
        "/predict",
        "One observation to one action chunk",
        &[400, 401, 408, 413, 415, 422, 429, 500, 503, 504],
    ),
    (
        "post",
        "/act",
        "The same in NVIDIA's json_numpy form",
        &[400, 401, 408, 413, 415, 422, 429, 500, 503, 504],
    ),
];

pub(super) async fn openapi(State(app): State<App>) -> Json<Value> {
    let mut paths = Map::new();
    for (method, path, summary, codes) in ROUTES {
        let mut responses = Map::from_iter([("200".to_owned(), json!({ "description": "as described" }))]);
        for code in codes {
            let reference = json!({ "$ref": "#/components/responses/Error" });
            responses.insert(code.to_string(), reference);
        }
        let mut operation = json!({ "summary": summary, "responses": responses });
        if let (Some(fields), "post") = (operation.as_object_mut(), method) {
            let schema =
                if path == "/predict" { "#/components/schemas/Predict" } else { "#/components/schemas/Act" };
            let content = json!({ "application/json": { "schema": { "$ref": schema } } });
            fields.insert("requestBody".into(), json!({ "required": true, "content": content }));
        }
        if let (Some(fields), true) =
            (operation.as_object_mut(), app.0.token.is_some() && codes.contains(&401))
        {
            fields.insert("security".into(), json!([{ "bearer": [] }]));
        }
        paths.insert(path.to_owned(), json!({ method: operation }));
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": { "title": "gr00t-serve", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Predict": predict_schema(), "Act": act_schema() },
            "responses": { "Error": {
                "description": "why not",
                "content": { "application/json": { "schema": {
                    "type": "object", "required": ["detail"], "properties": { "detail": {} },
                } } },
            } },
        },
    }))
}

fn predict_schema() -> Value {
    let numbers = json!({ "type": "array", "items": { "type": "number" } });
    let row =
        json!({ "oneOf": [numbers, { "type": "array", "items": numbers, "minItems": 1, "maxItems": 1 }] });
    let text = json!({ "type": "string" });
    let image = json!({ "oneOf": [text, { "type": "array", "items": text, "minItems": 1, "maxItems": 1 }] });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["images", "state", "instruction"],
        "properties": {
            "images": { "type": "object", "additionalProperties": image, "description": "camera to base64 of a picture" },
            "state": { "type": "object", "additionalProperties": row, "description": "state key to one time step" },
            "instruction": { "type": "string", "minLength": 1, "maxLength": 2000, "description": "also as language or prompt" },
            "embodiment": { "type": "string" },
            "seed": { "type": "integer", "minimum": 0, "default": 0 },
            "noise": { "type": "array", "items": numbers, "description": "[horizon][action_dim], instead of a seed" },
            "state_dtype": { "enum": ["float64", "float32"], "default": "float64" },
            "return_normalized": { "type": "boolean", "default": false },
        },
    })
}

fn act_schema() -> Value {
    json!({
        "type": "object",
        "oneOf": [{ "required": ["observation"] }, { "required": ["encoded"] }],
        "properties": {
            "observation": { "type": "object", "description": "video.*, state.* and annotation.* keys, arrays as json_numpy writes them" },
            "encoded": { "type": "string", "description": "the same as JSON in a string" },
        },
    })
}
