//! JSON objects for programs that look at this one.

use std::fmt::Write;

/// An object under construction.
#[derive(Debug)]
pub struct Json {
    text: String,
}

impl Json {
    /// Returns the text of an object whose fields `fill` writes.
    pub fn build(fill: impl FnOnce(&mut Json)) -> String {
        let mut json = Json {
            text: String::with_capacity(2048),
        };
        json.braces(fill);
        json.text
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        // Here and below: writing into a String cannot fail.
        let _ = write!(self.text, "{value}");
    }

    /// Adds a text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.quoted(value);
    }

    /// Adds a list of texts.
    pub fn texts<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a str>) {
        self.name(name);
        self.items(values, Json::quoted);
    }

    /// Adds an object, whose fields `fill` writes.
    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Json)) {
        self.name(name);
        self.braces(fill);
    }

    /// Adds `true` or `false`.
    pub fn flag(&mut self, name: &str, value: bool) {
        self.raw(name, if value { "true" } else { "false" });
    }

    /// Adds a list of objects: `fill` writes each.
    pub fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(&mut Json, T),
    ) {
        self.name(name);
        self.items(items, |json, item| json.braces(|json| fill(json, item)));
    }

    /// Adds a value that is JSON already.
    pub fn raw(&mut self, name: &str, value: &str) {
        self.name(name);
        self.text.push_str(value);
    }

    fn items<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Json, T),
    ) {
        self.text.push('[');
        for (number, item) in items.into_iter().enumerate() {
            if number > 0 {
                self.text.push(',');
            }
            write(self, item);
        }
        self.text.push(']');
    }

    fn braces(&mut self, fill: impl FnOnce(&mut Json)) {
        self.text.push('{');
        fill(self);
        self.text.push('}');
    }

    fn name(&mut self, name: &str) {
        if !self.text.ends_with('{') {
            self.text.push(',');
        }
        self.quoted(name);
        self.text.push(':');
    }

    fn quoted(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' | '\\' => {
                    self.text.push('\\');
                    self.text.push(character);
                }
                control if u32::from(control) < 0x20 => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(control));
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_lists_and_texts_nest_and_are_escaped() {
        let text = Json::build(|json| {
            json.number("most", u64::MAX);
            json.text("odd", "a\"b\\c\n{");
            json.texts("names", ["x", "\"y\""]);
            json.list("some", [1, 2], |json, value| {
                json.number("value", value);
                json.flag("even", value % 2 == 0);
            });
            json.list("none", [0; 0], |_, _| {});
            json.object("empty", |_| {});
            json.raw("last", "0.5");
        });
        let expected = concat!(
            r#"{"most":18446744073709551615,"odd":"a\"b\\c\u000a{","names":["x","\"y\""],"#,
            r#""some":[{"value":1,"even":false},{"value":2,"even":true}],"none":[],"empty":{},"last":0.5}"#,
        );
        assert_eq!(text, expected);
    }
}
