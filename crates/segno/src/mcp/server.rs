//! Speaks the protocol: requests become jobs, answers become results.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::ServiceExt as _;
use rmcp::model::*;
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::oneshot;

use super::documents;
use super::start::Progress;
use super::tools;
use super::worker::Answer;
use super::worker::Job;
use crate::error::CommandError;
use crate::error::Outcome;

/// How often a client should ask how far a piece of work is.
const POLL_MS: u64 = 2_000;
/// The name under which a confirmation is asked for and given.
const CONFIRM: &str = "confirm";

/// Serves on standard input and output until the client closes them.
pub(super) async fn speak(jobs: Sender<Job>) -> Outcome {
    let server = Server { jobs: Mutex::new(jobs) };
    let failed = |why: String| CommandError::failure("mcp", format!("cannot serve: {why}"));
    let serving = match server.serve(rmcp::transport::stdio()).await {
        Ok(serving) => serving,
        // A client that looks whether we are there and goes away again is no trouble.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(why) => return Err(failed(why.to_string())),
    };
    serving.waiting().await.map(|_| ()).map_err(|why| failed(why.to_string()))
}

struct Server {
    jobs: Mutex<Sender<Job>>,
}

impl Server {
    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T, ErrorData> {
        let gone = || ErrorData::internal_error("segno is ending", None);
        let (reply, answer) = oneshot::channel();
        let sent = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).send(job(reply));
        sent.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    async fn call(
        &self,
        tool: &str,
        arguments: &JsonObject,
        confirmed: Option<String>,
    ) -> Result<Answer, ErrorData> {
        let (tool, arguments) = (tool.to_owned(), arguments.clone());
        self.ask(|reply| Job::Call { tool, arguments, confirmed, reply }).await
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_tasks()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("segno", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "Keeps your work in a durable session. Begin with `new` (or `resume`), record as you go, end with `pause` \
             or `complete`."
                .to_owned(),
        );
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: tools::list(), ..Default::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        // An answer counts only with the mark of the question that it answers.
        let confirmed = request.request_state.clone().filter(|_| accepted(request.input_responses.as_ref()));
        let declined = request.input_responses.is_some() && confirmed.is_none();
        let mut answer = self.call(&request.name, &arguments, confirmed).await?;
        if let Answer::Ask { question, mark, instead } = answer {
            if declined {
                return Ok(failed("the person did not confirm it; nothing was changed".to_owned()).into());
            }
            let can = context.client_capabilities().is_some_and(|client| client.elicitation.is_some());
            if !can {
                let text = format!(
                    "only the person may confirm this, and this client cannot ask them; nothing was changed\nhint: ask \
                     them to type: {instead}"
                );
                return Ok(failed(text).into());
            }
            let asks_inline = context
                .protocol_version()
                .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
            if asks_inline {
                let ask = InputRequest::Elicitation(ElicitRequest::new(confirmation(question)));
                let requests = BTreeMap::from([(CONFIRM.to_owned(), ask)]);
                return Ok(InputRequiredResult::new(Some(requests), Some(mark)).into());
            }
            let said = context.peer.create_elicitation(confirmation(question)).await;
            let said = said.map_err(|why| ErrorData::internal_error(why.to_string(), None))?;
            if !(said.action == ElicitationAction::Accept && says_yes(said.content.as_ref())) {
                return Ok(failed("the person did not confirm it; nothing was changed".to_owned()).into());
            }
            answer = self.call(&request.name, &arguments, Some(mark)).await?;
        }
        Ok(match answer {
            Answer::Done(value) => CallToolResult::structured(value).into(),
            Answer::Failed(why) => failed(why).into(),
            // It changed while the person thought about it.
            Answer::Ask { .. } => {
                failed("the files changed meanwhile; nothing was changed, ask again".to_owned()).into()
            }
            Answer::Started(progress) => {
                if context.client_capabilities().is_some_and(|client| client.supports_tasks()) {
                    CreateTaskResult::new(task(&progress)).into()
                } else {
                    CallToolResult::structured(progress.document()).into()
                }
            }
            Answer::Unknown => {
                return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
            }
        })
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult { resources: documents::resources(), ..Default::default() })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        match self.ask(|reply| Job::Read { uri, reply }).await? {
            Ok(value) => {
                let text = serde_json::to_string_pretty(&value).unwrap_or_default();
                let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
                Ok(ReadResourceResult::new(vec![contents]).into())
            }
            Err(why) => Err(ErrorData::resource_not_found(why, None)),
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult { prompts: documents::prompts(), ..Default::default() })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        match documents::prompt(&request.name, argument) {
            Some(Ok(text)) => {
                Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
            }
            Some(Err(why)) => Err(ErrorData::invalid_params(why, None)),
            None => Err(ErrorData::invalid_params(format!("there is no prompt {}", request.name), None)),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let wanted = request.task_id.clone();
        let Some(progress) = self.ask(|reply| Job::Look { task: wanted, reply }).await? else {
            return Err(ErrorData::invalid_params(format!("there is no task {}", request.task_id), None));
        };
        let payload = if progress.is_over() {
            let mut result = CallToolResult::structured(progress.document());
            result.is_error = Some(progress.failed());
            let result = serde_json::to_value(result).unwrap_or_default();
            TaskPayload::Completed { result: result.as_object().cloned().unwrap_or_default() }
        } else {
            TaskPayload::Working
        };
        Ok(GetTaskResult::new(DetailedTask::new(task(&progress), payload)))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let wanted = request.task_id.clone();
        match self.ask(|reply| Job::Cancel { task: wanted, reply }).await? {
            Ok(()) => Ok(()),
            Err(why) => Err(ErrorData::invalid_params(why, None)),
        }
    }
}

fn failed(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

fn task(progress: &Progress) -> Task {
    let status = if progress.is_over() { TaskStatus::Completed } else { TaskStatus::Working };
    let (created, updated) = (progress.created_at.to_string(), progress.updated_at.to_string());
    Task::new(progress.session.to_string(), status, created, updated)
        .with_status_message(progress.words.clone())
        .with_poll_interval_ms(POLL_MS)
}

fn confirmation(question: String) -> ElicitRequestParams {
    let schema = ElicitationSchema::builder().required_bool(CONFIRM).build();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question,
        requested_schema: schema.unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new())),
    }
}

/// Whether the person accepted, and said yes.
fn accepted(responses: Option<&InputResponses>) -> bool {
    let Some(response) = responses.and_then(|all| all.get(CONFIRM)) else { return false };
    response.get("action").and_then(Value::as_str) == Some("accept") && says_yes(response.get("content"))
}

fn says_yes(content: Option<&Value>) -> bool {
    content.and_then(|content| content.get(CONFIRM)).and_then(Value::as_bool) == Some(true)
}
