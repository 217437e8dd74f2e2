//! A value as the document that it is written as, without writing it as text and reading that again.

use std::fmt::Display;

use serde::Serialize;
use serde::Serializer;
use serde::ser;
use serde::ser::Error as _;
use serde_json::Error;

use super::Node;

type Done = Result<Node, Error>;

/// Makes nodes of values, with the words that JSON has for them.
struct Maker;

/// A list that is being made; of a variant, with its name.
struct Items(Option<&'static str>, Vec<Node>);

/// Members that are being made; of a variant, with its name.
struct Members {
    variant: Option<&'static str>,
    made: Vec<(String, Node)>,
    name: Option<String>,
}

pub(super) fn node(value: &(impl Serialize + ?Sized)) -> Done {
    value.serialize(Maker)
}

fn number(number: impl Display) -> Done {
    Ok(Node::Number(number.to_string()))
}

/// A number with a fraction as JSON has it; it has no others than finite ones.
fn real(number: f64) -> Done {
    Ok(serde_json::Number::from_f64(number).map_or(Node::Null, |it| Node::Number(it.to_string())))
}

/// What a variant has stands under its name.
fn under(variant: Option<&'static str>, node: Node) -> Node {
    match variant {
        Some(variant) => Node::Map(vec![(variant.to_owned(), node)]),
        None => node,
    }
}

impl Members {
    fn new(variant: Option<&'static str>, length: usize) -> Self {
        Self { variant, made: Vec::with_capacity(length), name: None }
    }

    fn add(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.made.push((name.to_owned(), node(value)?));
        Ok(())
    }

    fn done(self) -> Done {
        Ok(under(self.variant, Node::Map(self.made)))
    }
}

impl Items {
    fn add(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.1.push(node(value)?);
        Ok(())
    }

    fn done(self) -> Done {
        Ok(under(self.0, Node::List(self.1)))
    }
}

impl Serializer for Maker {
    type Ok = Node;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    fn serialize_bool(self, flag: bool) -> Done {
        Ok(Node::Bool(flag))
    }
    fn serialize_i8(self, it: i8) -> Done {
        number(it)
    }
    fn serialize_i16(self, it: i16) -> Done {
        number(it)
    }
    fn serialize_i32(self, it: i32) -> Done {
        number(it)
    }
    fn serialize_i64(self, it: i64) -> Done {
        number(it)
    }
    fn serialize_u8(self, it: u8) -> Done {
        number(it)
    }
    fn serialize_u16(self, it: u16) -> Done {
        number(it)
    }
    fn serialize_u32(self, it: u32) -> Done {
        number(it)
    }
    fn serialize_u64(self, it: u64) -> Done {
        number(it)
    }
    fn serialize_f32(self, it: f32) -> Done {
        // As it is written, which is shorter than what it is exactly.
        it.to_string().parse().map_or(Ok(Node::Null), real)
    }
    fn serialize_f64(self, it: f64) -> Done {
        real(it)
    }
    fn serialize_char(self, it: char) -> Done {
        Ok(Node::Text(it.to_string()))
    }
    fn serialize_str(self, text: &str) -> Done {
        Ok(Node::Text(text.to_owned()))
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Done {
        Ok(Node::List(bytes.iter().map(|byte| Node::Number(byte.to_string())).collect()))
    }
    fn serialize_none(self) -> Done {
        Ok(Node::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        node(value)
    }
    fn serialize_unit(self) -> Done {
        Ok(Node::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Done {
        Ok(Node::Null)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        Ok(Node::Text(variant.to_owned()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        node(value)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        Ok(under(Some(variant), node(value)?))
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Items, Error> {
        Ok(Items(None, Vec::with_capacity(length.unwrap_or_default())))
    }
    fn serialize_tuple(self, length: usize) -> Result<Items, Error> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items, Error> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items, Error> {
        Ok(Items(Some(variant), Vec::with_capacity(length)))
    }
    fn serialize_map(self, length: Option<usize>) -> Result<Members, Error> {
        Ok(Members::new(None, length.unwrap_or_default()))
    }
    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Members, Error> {
        Ok(Members::new(None, length))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Members, Error> {
        Ok(Members::new(Some(variant), length))
    }
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Done {
        Ok(Node::Text(value.to_string()))
    }
}

impl ser::SerializeSeq for Items {
    type Ok = Node;
    type Error = Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }
    fn end(self) -> Done {
        self.done()
    }
}

impl ser::SerializeTuple for Items {
    type Ok = Node;
    type Error = Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }
    fn end(self) -> Done {
        self.done()
    }
}

impl ser::SerializeTupleStruct for Items {
    type Ok = Node;
    type Error = Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }
    fn end(self) -> Done {
        self.done()
    }
}

impl ser::SerializeTupleVariant for Items {
    type Ok = Node;
    type Error = Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }
    fn end(self) -> Done {
        self.done()
    }
}

impl ser::SerializeMap for Members {
    type Ok = Node;
    type Error = Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.name = Some(match node(key)? {
            Node::Text(name) | Node::Number(name) => name,
            Node::Bool(flag) => flag.to_string(),
            Node::Null | Node::List(_) | Node::Map(_) => return Err(Error::custom("a key must be a text")),
        });
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let name = self.name.take().ok_or_else(|| Error::custom("a member without a name"))?;
        self.made.push((name, node(value)?));
        Ok(())
    }
    fn end(self) -> Done {
        self.done()
    }
}

impl ser::SerializeStruct for Members {
    type Ok = Node;
    type Error = Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.add(name, value)
    }
    fn end(self) -> Done {
        self.done()
    }
}

impl ser::SerializeStructVariant for Members {
    type Ok = Node;
    type Error = Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.add(name, value)
    }
    fn end(self) -> Done {
        self.done()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::json;

    use super::Node;

    #[derive(Serialize)]
    enum Kind {
        Plain,
        #[serde(rename = "with text")]
        Text(String),
        Pair(u8, bool),
        Named {
            inner: Option<char>,
        },
    }

    #[derive(Serialize)]
    struct All {
        kinds: Vec<Kind>,
        numbers: (i64, u64, f64, f64, f64),
        short: f32,
        odd: [f64; 3],
        by_number: BTreeMap<i32, ()>,
        by_flag: BTreeMap<bool, &'static str>,
        by_kind: BTreeMap<char, u16>,
        unit: (),
        value: serde_json::Value,
        #[serde(flatten)]
        more: BTreeMap<String, Vec<i8>>,
    }

    /// It is the document that the written text would have been read as.
    #[test]
    fn what_a_value_is_written_as() {
        let all = All {
            kinds: vec![
                Kind::Plain,
                Kind::Text("x".into()),
                Kind::Pair(1, true),
                Kind::Named { inner: Some('ß') },
            ],
            numbers: (i64::MIN, u64::MAX, 1.0, -0.1, 1e300),
            short: 0.1,
            odd: [f64::NAN, f64::INFINITY, -0.0],
            by_number: BTreeMap::from([(-3, ())]),
            by_flag: BTreeMap::from([(true, "yes")]),
            by_kind: BTreeMap::from([('k', 7)]),
            unit: (),
            value: json!({ "b": [1, -2, 2.5, null, "\u{1f600}\n"], "a": {} }),
            more: BTreeMap::from([("z".to_owned(), vec![-1])]),
        };
        let text = serde_json::to_vec(&all).unwrap();
        assert_eq!(Node::of(&all), Node::read_json(&text).unwrap());
    }
}
