//! The engine, asked over its socket: what the tests look at, and what they break.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::http;

/// An engine.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) socket: PathBuf,
}

impl Engine {
    pub(crate) fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Whether it answers.
    pub(crate) fn is_there(&self) -> bool {
        http::ask(&self.socket, "GET", "/_ping", "").is_ok_and(|answer| answer.status == 200)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = http::ask(&self.socket, method, path, &body);
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}: run deploy/test.sh"));
        (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
    }

    /// A container by its name; none when there is none.
    pub(crate) fn container(&self, name: &str) -> Option<Value> {
        let (status, container) = self.ask("GET", &format!("/containers/{name}/json"), &Value::Null);
        (status == 200).then_some(container)
    }

    /// Whether a container of this name runs.
    pub(crate) fn is_running(&self, name: &str) -> bool {
        self.container(name).is_some_and(|container| container["State"]["Running"] == true)
    }

    /// Stops it as a person would.
    pub(crate) fn stop(&self, name: &str) {
        let (status, answer) = self.ask("POST", &format!("/containers/{name}/stop?t=5"), &Value::Null);
        assert!(matches!(status, 204 | 304), "{answer}");
    }

    /// Starts it as a person would.
    pub(crate) fn start(&self, name: &str) {
        let (status, answer) = self.ask("POST", &format!("/containers/{name}/start"), &Value::Null);
        assert!(matches!(status, 204 | 304), "{answer}");
    }

    /// Removes it, whatever it does.
    pub(crate) fn remove(&self, name: &str) {
        self.ask("DELETE", &format!("/containers/{name}?force=true&v=true"), &Value::Null);
    }

    /// Makes a container by hand, from an image that is here.
    pub(crate) fn create(&self, name: &str, image: &str) -> String {
        let body = json!({ "Image": image, "Labels": { "made-by": "a stranger" } });
        let (status, answer) = self.ask("POST", &format!("/containers/create?name={name}"), &body);
        assert_eq!(status, 201, "{answer}");
        answer["Id"].as_str().unwrap().to_owned()
    }

    /// The tags of a repository, sorted.
    pub(crate) fn tags(&self, repository: &str) -> Vec<String> {
        let filter = format!("%7B%22reference%22%3A%5B%22{}%22%5D%7D", repository.replace('/', "%2F"));
        let (_, images) = self.ask("GET", &format!("/images/json?filters={filter}"), &Value::Null);
        let tags = images.as_array().unwrap().iter().flat_map(|image| image["RepoTags"].as_array().cloned());
        let mut tags: Vec<String> = tags.flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        tags.sort();
        tags
    }

    /// Removes everything that a project left here.
    pub(crate) fn forget(&self, project: &str, target: &str) {
        if !self.is_there() {
            return;
        }
        for slot in ["a", "b"] {
            self.remove(&format!("{project}.{target}.{slot}"));
        }
        self.ask("DELETE", &format!("/networks/{project}.{target}"), &Value::Null);
        for tag in self.tags(&format!("huta-build/{project}")) {
            self.ask("DELETE", &format!("/images/{tag}?force=true"), &Value::Null);
        }
    }
}
