//! Short forms in scripts: a bare string where a whole object may stand.

/// Lets a type that derives serde with `remote = "Self"` be read from an object, or from a string that stands for one
/// (by its `From<String>`). Unlike an untagged enum this keeps the message of what is wrong inside the object.
macro_rules! string_or_object {
    ($type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Either;

                impl<'de> serde::de::Visitor<'de> for Either {
                    type Value = $type;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("a string or an object")
                    }

                    fn visit_str<E>(self, text: &str) -> Result<$type, E> {
                        Ok(<$type>::from(text.to_owned()))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        <$type>::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                deserializer.deserialize_any(Either)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                <$type>::serialize(self, serializer)
            }
        }
    };
}

pub(crate) use string_or_object;
