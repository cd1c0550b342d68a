// The full-text index in PostgreSQL, one for all processes: words are those of index.db, so both
// find the same. It works on a connection of its own, so that no message waits for it, without a
// state of the session, so that it may go through a pooler.

import { hash } from 'node:crypto';
import {
  type IndexTerm,
  indexedWords,
  indexTerms,
  RANKED_MATCHES,
  rankedByAge,
} from '../../../sessions/rules/earlier.ts';
import { PREFIX_END } from '../key-value.ts';
import type { FoundPart, IndexChange, IndexedPart, TextIndex, VectorRows } from '../text-index.ts';
import { type Connection, type Result, sendable } from './connection.ts';
import { MODEL_LOCK, SCHEMA } from './schema.ts';
import {
  foundPart,
  openTables,
  type PostgresIndexOptions,
  partsFrom,
  scrub,
} from './text-tables.ts';
import { openVectorRows } from './vectors.ts';

/**
 * A word weighs more the fewer of the matches have it. Scopes are words too (`scopeWord`): where few
 * are asked for, the index itself leaves out the others.
 */
const FIND = `
  WITH found AS MATERIALIZED (
    SELECT id, source, words FROM ${SCHEMA}.text_part WHERE words @@ ?::tsquery
  ), hit AS MATERIALIZED (
    SELECT found.id, found.words FROM found JOIN ${SCHEMA}.text_source source ON source.name = found.source
    WHERE source.scope IN (SELECT json_array_elements_text(?::json))
  ), term AS (
    SELECT ord, term::tsquery FROM json_array_elements_text(?::json) WITH ORDINALITY AS each (term, ord)
  ), match AS MATERIALIZED (
    SELECT hit.id, term.ord, ts_rank(hit.words, term.term, 1) AS rank
    FROM hit JOIN term ON hit.words @@ term.term
  ), weight AS (
    SELECT ord, ln(1 + ((SELECT count(*) FROM hit) - count(*) + 0.5) / (count(*) + 0.5)) AS weight
    FROM match GROUP BY ord
  ), best AS (
    SELECT match.id, sum(match.rank * weight.weight) AS score
    FROM match JOIN weight USING (ord) GROUP BY match.id ORDER BY score DESC, id LIMIT ${RANKED_MATCHES}
  )
  ${partsFrom(', best.score')} JOIN best ON best.id = part.id`;
/** Beyond so many scopes, looking them up as words takes longer than it saves. */
const MAX_SCOPE_WORDS = 50;

export function createPostgresIndex(place: PostgresIndexOptions): TextIndex {
  const tables = openTables(place);
  const { send } = tables;
  const vectors = openVectorRows(tables);
  return {
    generation: 0,
    async state(source) {
      const sql = `SELECT stamp, position FROM ${SCHEMA}.text_source WHERE name = ?`;
      const [row] = (await send(sql, [source])).rows;
      return row && stateIn(row);
    },
    async states(prefix) {
      const sql = `SELECT name, stamp, position FROM ${SCHEMA}.text_source
        WHERE name >= ? AND name < ? ORDER BY name`;
      const { rows } = await send(sql, [prefix, prefix + PREFIX_END]);
      return new Map(rows.map((row) => [String(row['name']), stateIn(row)]));
    },
    put: (changes) =>
      tables.change(async (sendIn) => {
        sendIn(`SELECT pg_advisory_xact_lock_shared(${MODEL_LOCK})`).catch(() => undefined);
        // In one order, so that no two processes wait for each other.
        const sorted = changes.toSorted(byName);
        const isFree = await Promise.all(sorted.map((change) => advance(sendIn, change)));
        const written = sorted.filter((_change, at) => isFree[at]);
        const added: Added[] = [];
        for (const change of written) added.push(await replaceParts(sendIn, change));
        await addParts(sendIn, added);
        return new Set(written.map(({ source }) => source.name));
      }),
    async removePlaces(source, places) {
      const sql = `DELETE FROM ${SCHEMA}.text_part WHERE source = ?
        AND place IN (SELECT json_array_elements_text(?::json)::bigint)`;
      await send(sql, [source, JSON.stringify(places)]);
    },
    async remove(source) {
      await send(`DELETE FROM ${SCHEMA}.text_source WHERE name = ?`, [source]);
    },
    scrub: () => scrub(place),
    async find(words, options): Promise<readonly FoundPart[]> {
      const scopes = [...new Set(options.scopes)];
      const terms = indexTerms(words).map(queryOf);
      if (terms.length === 0 || scopes.length === 0) return [];
      const any = `(${terms.join(' | ')})`;
      const within = scopes.map((scope) => `'${scopeWord(scope)}'`).join(' | ');
      const { rows } = await send(FIND, [
        scopes.length > MAX_SCOPE_WORDS ? any : `(${within}) & ${any}`,
        ...[JSON.stringify(scopes), JSON.stringify(terms)],
      ]);
      const found = rows.map((row) => ({ part: foundPart(row), score: Number(row['score']) }));
      return rankedByAge(found, options);
    },
    vectors: async (): Promise<VectorRows> => vectors,
    [Symbol.asyncDispose]: tables.close,
  };
}

const byName = ({ source: a }: IndexChange, { source: b }: IndexChange) =>
  a.name < b.name ? -1 : 1;

const stateIn = (row: Result['rows'][number]) => ({
  stamp: String(row['stamp']),
  position: Number(row['position']),
});

// Words and queries. What is left in them are letters and digits, so quoting is safe.

/** What PostgreSQL keeps of a word, and of a text (somewhat less than a megabyte). */
const MAX_PLACES = 255;
const MAX_PLACE = 16_383;
const MAX_VECTOR_BYTES = 900_000;
const WORD_BYTES = 8;
const PLACE_BYTES = 2;

const queryOf = ({ word, isPrefix }: IndexTerm) => `'${word}'${isPrefix ? ':*' : ''}`;

/** No text has such a word. */
const scopeWord = (scope: string) => `=${hash('sha256', scope, 'base64url')}`;

/** @returns undefined for a text without words */
function vectorOf(text: string, scope: string): string | undefined {
  const words = indexedWords(text);
  if (words === '') return undefined;
  const places = new Map<string, number[]>();
  let bytes = 0;
  for (const [at, word] of words.split(' ').entries()) {
    const known = places.get(word);
    if ((known?.length ?? 0) >= MAX_PLACES) continue;
    bytes += known === undefined ? Buffer.byteLength(word) + WORD_BYTES : PLACE_BYTES;
    if (bytes > MAX_VECTOR_BYTES) break;
    if (known === undefined) places.set(word, [Math.min(at + 1, MAX_PLACE)]);
    else known.push(Math.min(at + 1, MAX_PLACE));
  }
  const terms = [...places].map(([word, at]) => `'${word}':${at.join()}`);
  return `'${scopeWord(scope)}' ${terms.join(' ')}`;
}

// Writing.

type Send = Connection['send'];

/** Whether the source was as it is said to have been. Another one that writes it waits. */
async function advance(
  send: Send,
  { source: { name, scope, label }, step: { from, to } }: IndexChange,
): Promise<boolean> {
  const { count } =
    from === undefined
      ? await send(
          `INSERT INTO ${SCHEMA}.text_source (name, scope, label, stamp, position)
           VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`,
          [name, scope, label, to.stamp, to.position],
        )
      : await send(
          `UPDATE ${SCHEMA}.text_source SET scope = ?, label = ?, stamp = ?, position = ?
           WHERE name = ? AND stamp = ? AND position = ?`,
          [scope, label, to.stamp, to.position, name, from.stamp, from.position],
        );
  return count === 1;
}

type Added = Pick<IndexChange, 'source' | 'parts'>;

/** Removes what is not among the new parts; returns those that are not there yet. */
async function replaceParts(send: Send, { source, step, parts }: IndexChange): Promise<Added> {
  if (!step.replaces || step.from === undefined) return { source, parts };
  const keyOf = ({ role, isForeign, text }: IndexedPart) =>
    JSON.stringify([role, isForeign, plain(text)]);
  const added = Map.groupBy(parts, keyOf);
  const sql = `${partsFrom()} WHERE part.source = ? ORDER BY part.id`;
  const gone: number[] = [];
  const moved: { readonly id: number; readonly place: number; readonly at: number }[] = [];
  for (const row of (await send(sql, [source.name])).rows) {
    const { id, ...known } = foundPart(row);
    const same = added.get(keyOf(known))?.shift();
    const at = Math.round(same?.at ?? 0);
    if (same === undefined) gone.push(id);
    else if (same.place !== known.place || at !== known.at) {
      moved.push({ id, place: same.place, at });
    }
  }
  if (gone.length > 0) {
    await send(
      `DELETE FROM ${SCHEMA}.text_part
       WHERE id IN (SELECT json_array_elements_text(?::json)::bigint)`,
      [JSON.stringify(gone)],
    );
  }
  if (moved.length > 0) {
    await send(
      `UPDATE ${SCHEMA}.text_part part SET place = moved.place, at = moved.at
       FROM json_to_recordset(?::json) AS moved (id bigint, place bigint, at bigint)
       WHERE part.id = moved.id`,
      [JSON.stringify(moved)],
    );
  }
  return { source, parts: [...added.values()].flat() };
}

async function addParts(send: Send, added: readonly Added[]): Promise<void> {
  const rows = added.flatMap(({ source: { name, scope }, parts }) =>
    parts.flatMap(({ place, role, isForeign, at, text }) => {
      const words = vectorOf(text, scope);
      if (words === undefined) return [];
      const is_foreign = isForeign ? 1 : 0;
      const numbers = { place, is_foreign, at: Math.round(at) };
      return [{ source: name, role, ...numbers, words, text: plain(text) }];
    }),
  );
  if (rows.length === 0) return;
  await send(
    `WITH added AS (
       INSERT INTO ${SCHEMA}.text_part (source, place, role, is_foreign, at, text, words)
       SELECT source, place, role, is_foreign, at, text, words::tsvector
       FROM json_to_recordset(?::json) AS new (source text, place bigint, role text,
         is_foreign bigint, at bigint, text text, words text)
       RETURNING id
     )
     INSERT INTO ${SCHEMA}.text_waiting
     SELECT id FROM added WHERE EXISTS (SELECT 1 FROM ${SCHEMA}.text_model)`,
    [JSON.stringify(rows)],
  );
}

/** As it can be a string of JSON that the server reads. */
const plain = (text: string) => String(sendable(text)).toWellFormed();
