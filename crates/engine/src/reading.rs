//! What a face may read of the record without changing it: the journal, pages of lists, who drives, which store it is.

use std::path::Path;
use std::time::Duration;

use segno_core::List;
use segno_core::SessionId;
use segno_core::StoreId;
use segno_store::EventRow;
use segno_store::Item;
use segno_store::Items;
use segno_store::Lease;
use segno_store::Loaded;
use segno_store::Page;
use segno_store::Standing;

use crate::Engine;
use crate::Error;

/// How many rows are read at once from the end of a list.
const NEWEST: usize = 100;

impl Engine {
    /// Up to `limit` events after the one with this number, in order. Damaged ones are told apart, never left out.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<Vec<EventRow>, Error> {
        Ok(self.store().events(session, after, limit)?)
    }

    /// Waits until the session has an event after this one or the time is over; answers with the newest number.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn wait_for_events(&self, session: SessionId, after: u64, most: Duration) -> Result<u64, Error> {
        Ok(self.store().wait_after(session, after, most)?)
    }

    /// A number that is another one after somebody else has recorded something, in whichever session. What this engine
    /// records itself may leave it as it is.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn change_mark(&self) -> Result<u64, Error> {
        Ok(self.store().change_mark()?)
    }

    /// A page of a list, and how long the list is.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn page(&self, session: SessionId, list: List, page: &Page) -> Result<Items, Error> {
        Ok(self.store().items(session, list, page)?)
    }

    /// The rows of a list from the newest backwards, up to the first that is not wanted, read page by page: what is asked of
    /// the end of a list must not cost more the longer the list is.
    pub(crate) fn newest_while(
        &self,
        session: SessionId,
        list: List,
        wanted: impl Fn(&Item) -> bool,
    ) -> Result<Vec<Item>, Error> {
        let mut all: Vec<Item> = Vec::new();
        loop {
            let after =
                all.last().map(|item| segno_store::ItemPosition { seq: item.seq, key: item.key.clone() });
            let page = Page { after, limit: NEWEST, newest_first: true };
            let items = self.store().page(session, list, &page)?;
            let (read, before) = (items.len(), all.len());
            all.extend(items.into_iter().take_while(&wanted));
            if read < NEWEST || all.len() - before < read {
                return Ok(all);
            }
        }
    }

    /// The row of the newest run of a session.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn newest_run(&self, session: SessionId) -> Result<Option<Item>, Error> {
        Ok(self.store().page(session, List::Runs, &Page::newest(1))?.into_iter().next())
    }

    /// The state as it was after this event, and what is wrong with the record up to there.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn state_at(&self, session: SessionId, seq: u64) -> Result<Loaded, Error> {
        let (state, notices) = segno_store::state_at(self.store(), session, seq)?;
        Ok(Loaded { state, notices })
    }

    /// Who holds the right to drive a session. Whether they live is for [`crate::lease::life`] to say.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn lease(&self, session: SessionId) -> Result<Option<Lease>, Error> {
        Ok(self.store().lease(session)?)
    }

    /// The sessions whose driver lives, as far as that can be told.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn driven_sessions(&self) -> Result<Vec<(SessionId, Lease)>, Error> {
        let mut leases = self.store().leases()?;
        leases.retain(|(_, lease)| crate::lease::life(lease).may_live());
        Ok(leases)
    }

    /// The sessions whose driver died without a word, and that nobody has settled yet.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unsettled_sessions(&self) -> Result<Vec<SessionId>, Error> {
        let leases = self.store().leases()?.into_iter();
        Ok(leases.filter(|(_, lease)| !crate::lease::life(lease).may_live()).map(|(id, _)| id).collect())
    }

    /// Whether the store is the one whose id it has, or a copy.
    pub fn standing(&self) -> Standing {
        self.store().identity().standing
    }

    /// Makes a copy a store of its own; answers with its new id.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn adopt_store(&self) -> Result<StoreId, Error> {
        Ok(self.store().adopt()?.id)
    }

    /// Writes a consistent copy of the store while others go on writing; answers with its size in bytes.
    ///
    /// # Errors
    /// If the file is there already, or cannot be written.
    pub fn back_up(&self, to: &Path) -> Result<u64, Error> {
        Ok(self.store().backup(to)?)
    }

    /// Upkeep of the store that may take a while. Nothing that is in a hurry calls it.
    ///
    /// # Errors
    /// If it could not be done; nothing is lost by that.
    pub fn tend_store(&self) -> Result<(), Error> {
        Ok(self.store().maintain()?)
    }
}
