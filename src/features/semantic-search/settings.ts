// Configuration of the search by meaning: the embedding model, and what is indexed.

import { z } from 'zod';
import {
  count,
  type Problems,
  seconds,
  secret,
  section,
  text,
  texts,
  unless,
  unlessWebAddress,
} from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';
import { splitModelName } from '../../providers/rules/model-names.ts';

/** The prefix of models that run in this process, by a package that the user installs. */
export const LOCAL_PREFIX = 'transformers/';
export const LOCAL_PACKAGE = '@huggingface/transformers';

/** Prefix of the sources in the index that are files of the workspace, and of their scopes. */
export const FILE_SOURCES = 'files/';
export const FILE_SCOPES = 'files:';

export const MEANING_SOURCES = ['notes', 'conversations', 'files'] as const;
export type MeaningSource = (typeof MEANING_SOURCES)[number];

const embeddings = section({
  model: text().describe(
    'Embedding model with its provider, e.g. openai/text-embedding-3-small, ollama/nomic-embed-text, ' +
      'or transformers/<model> for the package @huggingface/transformers; with apiBase the name alone. ' +
      'Empty: no search by meaning.',
  ),
  apiBase: text().describe(
    'Base URL of a server with /embeddings, e.g. http://127.0.0.1:8080/v1. Empty: the provider of the model.',
  ),
  apiKey: secret()
    .default('')
    .describe('API key. Empty: the key of the provider, unless apiBase is set.'),
  dimensions: count(64, 4096)
    .optional()
    .describe('Numbers per vector, for models that can shorten them. Default: all of the model.'),
  sources: z
    .array(z.enum(MEANING_SOURCES))
    .min(1)
    .default([...MEANING_SOURCES])
    .describe('What is indexed, and so sent to the embedding model.'),
  ignore: texts().describe(
    'Files of the workspace that are left out, with * and ?, e.g. "archive/**", "*.csv".',
  ),
  maxChunks: count(1000, 200_000, 100_000).describe('Most passages that get a vector.'),
  timeoutSecs: seconds(1, 600, 30).describe('Longest wait for one request to the model.'),
});

export const searchSchema = section({ embeddings });

/** Checks that the server of the model is known. */
export function searchConflicts({
  search,
}: {
  readonly search: z.infer<typeof searchSchema>;
}): Problems {
  const { model, apiBase, apiKey } = search.embeddings;
  const at = 'search.embeddings';
  const isLocal = model.startsWith(LOCAL_PREFIX);
  const vendor = splitModelName(model)?.vendor;
  return [
    ...unlessWebAddress(`${at}.apiBase`, apiBase, 'http://127.0.0.1:8080/v1'),
    ...unless(
      (apiBase === '' && apiKey === '') || (model !== '' && !isLocal),
      `${at}.model`,
      t`a server is set, but no model of it`,
      t`Set the name of the model at this server.`,
    ),
    ...unless(
      model === '' || apiBase !== '' || isLocal || vendor !== undefined,
      `${at}.model`,
      t`"${model}" names no provider`,
      t`Write the provider before the slash, e.g. openai/${model}, or set ${at}.apiBase.`,
    ),
    ...unless(
      apiBase !== '' || vendor !== 'anthropic',
      `${at}.model`,
      t`Anthropic has no embedding models`,
      t`Use one of another provider, e.g. openai/text-embedding-3-small or ollama/nomic-embed-text.`,
    ),
  ];
}
