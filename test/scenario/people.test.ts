// People between a simulated platform, the whole program and a simulated model: each has memory,
// language and time of their own, and nothing of another's.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { callTools, echo, say } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = { id: 700, first_name: 'Olga' };
const ANNA = { id: 701, first_name: 'Anna' };

const world = await startTelegramWorld({
  respond: echo,
  channel: { streaming: true, allowFrom: [`${ANNA.id}`] },
  files: { 'memory/MEMORY.md': '- secret-of-olga\n', 'USER.md': 'profile-of-olga\n' },
  pair: { [OWNER.id]: 'owner' },
});
const { telegram, model, file, texts: heardBy } = world;
afterAll(() => world[Symbol.asyncDispose]());

const hears = async (chat: number, like: RegExp) => (await world.hears(chat, like)).text;

/** What the model is shown when the person says this. */
async function askedBy(person: typeof OWNER, text: string): Promise<string> {
  telegram.say(person, text);
  await hears(person.id, new RegExp(text.replace('please say ', '')));
  // What is said next would join a turn whose draft shows its answer.
  await world.hasNo('running');
  return JSON.stringify(model.requests.at(-1));
}

it("shows the owner's memory to the owner alone", async () => {
  const owners = await askedBy(OWNER, 'please say nonce-one');
  expect(owners).toContain('secret-of-olga');
  expect(owners).toContain('profile-of-olga');
  expect(owners).toMatch(/# Subagent profiles\\n\\n- quick: .*\\n- researcher: /);
  const annas = await askedBy(ANNA, 'please say nonce-two');
  expect(annas).not.toContain('secret-of-olga');
  expect(annas).not.toContain('profile-of-olga');
});

it('shows a person their own notes', async () => {
  telegram.say(ANNA, '/me');
  const id = /p[0-9a-f]{12}/.exec(await hears(ANNA.id, /Role: trusted/))?.[0] ?? '';
  const notes = file(`people/${id}/memory`);
  await mkdir(notes, { recursive: true });
  await writeFile(join(notes, 'MEMORY.md'), '- note-of-anna\n');
  expect(await askedBy(ANNA, 'please say nonce-three')).toContain('note-of-anna');
  expect(await askedBy(OWNER, 'please say nonce-four')).not.toContain('note-of-anna');
  expect(await readFile(file('memory/MEMORY.md'), 'utf8')).not.toContain('anna');
});

it('keeps the notes of others out of an owner’s turn; a command shows them and is in the audit', async () => {
  const [notes = ''] = await readdir(file('people'));
  const path = `people/${notes}/memory/MEMORY.md`;
  const before = model.requests.length;
  model.script(
    callTools(
      { name: 'list_dir', arguments: { path: 'people' } },
      ...[path, `./x/../${path}`, `../workspace/${path}`, file(path)].map((each) => ({
        ...{ name: 'read_file', arguments: { path: each } },
      })),
      { name: 'search_files', arguments: { query: 'note-of-anna' } },
      { name: 'write_file', arguments: { path, content: 'overwritten' } },
    ),
    say('Looked around.'),
  );
  telegram.say(OWNER, 'what does Anna keep?');
  await hears(OWNER.id, /Looked around/);
  const results = JSON.stringify(
    model.requests.slice(before + 1).map(({ toolResults }) => toolResults),
  );
  expect(results).not.toContain('- note-of-anna');
  expect(results).not.toContain('folder  p');
  expect(await readFile(file(path), 'utf8')).toBe('- note-of-anna\n');
  telegram.say(OWNER, '/people Anna notes');
  await hears(OWNER.id, /note-of-anna/);
  expect(await world.nanobot('audit', 'show')).toMatch(
    /\/people Anna notes.* session=Olga \(telegram:700\)/,
  );
  telegram.say(OWNER, '/sessions all');
  expect(await hears(OWNER.id, /messages, /)).toMatch(/^. Anna \(telegram:701\): /m);
  telegram.say(OWNER, '/sessions all search nonce');
  await hears(OWNER.id, /^. .*telegram:701, user: /m);
  telegram.say(OWNER, '/sessions export telegram:701');
  await hears(OWNER.id, /The conversation telegram:701 is in the file/);
  telegram.say(OWNER, '/sessions index');
  await hears(OWNER.id, /^Wrote \d+ extracts to memory\/sessions/);
  telegram.say(OWNER, '/sessions all archive');
  await hears(OWNER.id, /^Moved 0 files to the archive/);
});

it("answers in a person's language and time zone, also after a restart", async () => {
  telegram.say(ANNA, '/language klingonish');
  await hears(ANNA.id, /^Unknown language\. Try: de, en, fr$/);
  telegram.say(ANNA, '/language Deutsch');
  await hears(ANNA.id, /I answer you in German/);
  telegram.say(ANNA, '/timezone Asia/Tokyo');
  await hears(ANNA.id, /Asia\/Tokyo/);
  telegram.say(ANNA, '/timezone Mars');
  await hears(ANNA.id, /^Unknown time zone/);
  await world.restart();
  const annas = await askedBy(ANNA, 'please say nonce-five');
  expect(annas).toContain('Answer in German');
  expect(annas).toContain('(Asia/Tokyo)');
  const owners = await askedBy(OWNER, 'please say nonce-six');
  expect(owners).not.toContain('Answer in German');
  expect(owners).not.toContain('(Asia/Tokyo)');
});

it('lists people to the owner alone', async () => {
  telegram.say(ANNA, '/people');
  await hears(ANNA.id, /Only my owner/);
  telegram.say(OWNER, '/people');
  expect(await hears(OWNER.id, /Anna.*trusted/)).toMatch(/telegram.*701/);
});

it('answers nothing more to whoever is blocked, also not what is on its way', async () => {
  telegram.say(ANNA, '/language auto');
  const gate = Promise.withResolvers<void>();
  const before = model.requests.length;
  model.script({ chunks: ['The long answer has begun. ', gate.promise, 'Ended.'] });
  telegram.say(ANNA, 'a long question');
  await hears(ANNA.id, /has begun/);
  telegram.say(ANNA, '/queue followup');
  telegram.say(ANNA, 'one more question');
  await world.nanobot('pair', 'block', 'telegram', `${ANNA.id}`);
  const [request] = model.requests.slice(before);
  await request?.abandoned;
  gate.resolve();
  expect(await askedBy(OWNER, 'please say nonce-seven')).toContain('nonce-seven');
  expect(model.requests).toHaveLength(before + 2);
  expect(heardBy(ANNA.id).join()).not.toMatch(/Ended|one more/);
});
