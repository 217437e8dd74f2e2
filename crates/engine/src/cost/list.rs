//! The price list that an engine goes by: the one that comes along, with the user's own file laid over it.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use super::Prices;
use crate::Engine;
use crate::Error;

/// Where prices are found. They are read when somebody first asks for one.
#[derive(Clone, Debug, Default)]
pub struct PriceList {
    own: Option<PathBuf>,
    read: Arc<OnceLock<Arc<Prices>>>,
}

impl PriceList {
    /// With the user's own file, which need not be there.
    pub fn with_file(own: PathBuf) -> Self {
        Self { own: Some(own), ..Self::default() }
    }

    /// The prices.
    ///
    /// # Errors
    /// If the user's own file cannot be used.
    pub fn prices(&self) -> Result<Arc<Prices>, Error> {
        if let Some(prices) = self.read.get() {
            return Ok(prices.clone());
        }
        let prices = match &self.own {
            Some(path) => {
                let bad = |why: String| Error::BadPrices { path: path.clone(), why };
                match std::fs::read_to_string(path) {
                    Ok(text) => Prices::with(&text).map_err(|why| bad(why.to_string()))?,
                    Err(why) if why.kind() == ErrorKind::NotFound => Prices::built_in(),
                    Err(why) => return Err(bad(why.to_string())),
                }
            }
            None => Prices::built_in(),
        };
        Ok(self.read.get_or_init(|| Arc::new(prices)).clone())
    }
}

impl Engine {
    /// What models cost by the list.
    ///
    /// # Errors
    /// If the user's own prices cannot be used.
    pub fn prices(&self) -> Result<Arc<Prices>, Error> {
        self.options.prices.prices()
    }
}
