// Flow of node-zendesk against a product; prints facts about what it met. Arguments: host:port, e-mail, token.
const {createClient} = require("node-zendesk");

const [netloc, email, token] = process.argv.slice(2);
const client = createClient({username: email, token, endpointUri: `http://${netloc}/api/v2`});
const facts = {};
const control = (path) => fetch(`http://${netloc}/__control__/${path}`, {method: "POST"});
const tickets = (value) => value.tickets ?? value;

async function finished(id) {
  for (let tries = 0; tries < 200; tries += 1) {
    const {result} = await client.jobstatuses.show(id);
    const job = result.job_status ?? result;
    if (job.status === "completed") return job;
  }
  throw new Error("the job never ends");
}

async function users() {
  const made = await client.users.create({user: {name: "Nora", email: "nora@mail.example"}});
  const user = made.result.user ?? made.result;
  await client.users.update(user.id, {user: {name: "Nora Two"}});
  const seen = await client.users.show(user.id);
  facts.user = (seen.result.user ?? seen.result).name;
  facts.users = (await client.users.list()).length;
  try {
    await client.users.create({user: {name: "Other", email: "nora@mail.example"}});
  } catch (error) {
    facts.duplicate = error.statusCode ?? error.status ?? String(error.message).slice(0, 60);
  }
  return user;
}

async function main() {
  const user = await users();
  const made = await client.tickets.create({ticket: {subject: "From node", comment: {body: "hello"}, requester_id: user.id}});
  const ticket = made.result.ticket ?? made.result;
  facts.created = [ticket.subject, ticket.status];
  const me = (await client.users.me()).result;
  await client.tickets.update(ticket.id, {ticket: {assignee_id: (me.user ?? me).id, status: "pending", comment: {body: "wait"}}});
  const shown = (await client.tickets.show(ticket.id)).result;
  facts.updated = (shown.ticket ?? shown).status;
  facts.comments = (await client.tickets.getComments(ticket.id)).map((one) => one.body);
  facts.audits = (await client.ticketaudits.list(ticket.id)).length;
  const all = await client.tickets.list();
  facts.listed = all.length === new Set(all.map((one) => one.id)).size && all.length > 10;
  const job = await client.tickets.createMany({tickets: [1, 2, 3].map((n) => ({subject: `Bulk ${n}`, comment: {body: "x"}}))});
  const done = await finished((job.result.job_status ?? job.result).id);
  facts.job = done.results.map((one) => typeof one.id);
  const ids = done.results.map((one) => one.id);
  const update = await client.tickets.updateMany(ids, {ticket: {priority: "high"}});
  await finished((update.result.job_status ?? update.result).id);
  facts.high = tickets((await client.tickets.showMany(ids)).result ?? await client.tickets.showMany(ids)).map((one) => one.priority);
  const merge = await client.tickets.merge(ids[0], {ids: [ids[1]], source_comment: "out", target_comment: "in"});
  await finished((merge.result.job_status ?? merge.result).id);
  const gone = (await client.tickets.show(ids[1])).result;
  facts.merged = [(gone.ticket ?? gone).status, (gone.ticket ?? gone).tags];
  const found = await client.search.query("type:ticket node");
  facts.search = (Array.isArray(found) ? found : found.result.results ?? found.result).map((one) => one.subject);
  await control("advance?seconds=120");
  const exported = await client.tickets.exportIncremental?.(1000000000) ?? await client.tickets.incremental?.(1000000000);
  facts.incremental = Array.isArray(exported) ? exported.length > 10 : (exported?.result ?? exported)?.length > 10;
  facts.groups = (await client.groups.list()).map((one) => one.name);
  facts.views = (await client.views.list()).length;
  const macro = await client.macros.create({macro: {title: "M", actions: [{field: "status", value: "open"}]}});
  facts.macro = (macro.result.macro ?? macro.result).title;
  facts.organization = (await client.organizations.create({organization: {name: "Hooli"}})).result.name
    ?? "unnamed";
  try {
    await client.tickets.show(99999999);
  } catch (error) {
    facts.missing = error.statusCode ?? error.status ?? String(error.message).slice(0, 60);
  }
  await control("ratelimit?n=1&retry_after=1");
  try {
    const again = await client.users.me();
    facts.limited = again.result.statusCode;
  } catch (error) {
    facts.limited = error.statusCode ?? error.status ?? String(error.message).slice(0, 60);
  }
  await client.tickets.delete(ids[2]);
  console.log(`FACTS ${JSON.stringify(facts)}`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
