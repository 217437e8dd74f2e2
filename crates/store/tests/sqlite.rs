//! What is SQLite's own: its files, its forms, its locks, and what is done when they are damaged.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/home.rs"]
mod home;

#[path = "sqlite/backup.rs"]
mod backup;
#[path = "sqlite/busy.rs"]
mod busy;
#[path = "sqlite/damage.rs"]
mod damage;
#[path = "sqlite/files.rs"]
mod files;
#[path = "sqlite/foreign.rs"]
mod foreign;
#[path = "sqlite/handles.rs"]
mod handles;
#[path = "sqlite/identity.rs"]
mod identity;
#[path = "sqlite/migrations.rs"]
mod migrations;
#[path = "sqlite/order.rs"]
mod order;
#[path = "sqlite/room.rs"]
mod room;
#[path = "sqlite/salvage.rs"]
mod salvage;
#[path = "sqlite/states.rs"]
mod states;
#[path = "sqlite/turns.rs"]
mod turns;
