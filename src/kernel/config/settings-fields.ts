// The kinds of values in the configuration, most of them with the default of a setting.

import { z } from 'zod';
import { t } from '../../lib/texts.ts';
import { isCallName, UNKNOWN_SENDER_POLICIES } from '../access/admission.ts';
import type { ConfigProblem } from '../message/errors.ts';

// Types without limits are the same for all settings; each schema takes 0.7 KB or more.
const BOOLEAN = z.boolean();
const NUMBER = z.number();
const INT = z.int();
const STRING = z.string();
const STRINGS = z.array(STRING);

export const flag = (usual: boolean) => BOOLEAN.default(usual);
export const text = (usual = '') => STRING.default(usual);
export const texts = () => STRINGS.default([]);

export function choice<const Choice extends string>(
  choices: readonly Choice[],
  usual: NoInfer<Choice>,
) {
  return z.enum(choices).default(usual as z.core.util.NoUndefined<Choice>);
}

/** A group of settings that may be absent as a whole. */
export function section<Fields extends z.ZodRawShape>(fields: Fields) {
  const group = z.strictObject(fields);
  return group.prefault({} as z.core.util.NoUndefined<z.input<typeof group>>);
}

/** A number between both limits, with its default. */
export function seconds(minimum: number, maximum: number): z.ZodNumber;
export function seconds(minimum: number, maximum: number, usual: number): z.ZodDefault<z.ZodNumber>;
export function seconds(minimum: number, maximum: number, usual?: number) {
  const bounded = NUMBER.check(z.gte(minimum), z.lte(maximum));
  return usual === undefined ? bounded : bounded.default(usual);
}

/** An integer, in the same way. */
export function count(minimum: number, maximum: number): z.ZodInt;
export function count(minimum: number, maximum: number, usual: number): z.ZodDefault<z.ZodInt>;
export function count(minimum: number, maximum: number, usual?: number) {
  const bounded = INT.check(z.gte(minimum), z.lte(maximum));
  return usual === undefined ? bounded : bounded.default(usual);
}

export const port = z.int().min(1).max(65_535);
export const secret = () => STRING.meta({ secret: true });
/** Of one channel or provider. Secret, because it may contain a password. */
export const proxy = secret()
  .default('')
  .describe('Proxy of its connections, in place of network.proxy; "direct": none.');

/** The name of an additional account of a channel. */
export const accountName = z
  .string()
  .regex(
    /^(?!default$)[a-z0-9-]{1,32}$/,
    'Use lower-case letters, digits and "-" in the name of an account, and not "default"',
  );

/** The same settings for a further account: each may be absent, at any depth, without a default. */
export function accountSection(
  fields: Readonly<Record<string, z.ZodType>>,
): z.ZodObject<Record<string, z.ZodType>> {
  const optional = Object.entries(fields).map(([key, field]) => {
    const { description } = field;
    const whole = withoutDefault(field);
    const bare = (whole instanceof z.ZodObject ? accountSection(whole.shape) : whole).optional();
    return [key, description === undefined ? bare : bare.describe(description)] as const;
  });
  return z.strictObject(Object.fromEntries(optional));
}

function withoutDefault(field: z.ZodType): z.ZodType {
  const wraps = field instanceof z.ZodDefault || field instanceof z.ZodPrefault;
  return wraps ? withoutDefault(field.unwrap() as z.ZodType) : field;
}

// Settings that several channels share, and the check of the agent's names in groups.

export const allowFrom = texts().describe(
  'Stable ids of senders that may talk to the agent. Empty: nobody; "*": everybody.',
);

export const groups = texts().describe(
  'Stable ids of groups in which the agent answers. Empty: no group.',
);

export const groupSettings = {
  groups,
  groupAllow: choice(['allowlisted', 'members'], 'allowlisted').describe(
    'Who may talk to the agent in a listed group. allowlisted: people on allowFrom; members: any member.',
  ),
  groupNames: z
    .array(z.string().max(64))
    .max(20)
    .default([])
    .describe(
      'Names that address the agent in addition to a mention; * matches any letters of a word.',
    ),
};
/** Of channels whose answers stream and may quote. */
export const answerSettings = {
  streaming: flag(true).describe('Show a live preview of the answer.'),
  quoteReplies: flag(false).describe('Quote the question in the answer; in groups always.'),
};
export const strangers = choice(UNKNOWN_SENDER_POLICIES, 'silent').describe(
  'Unknown senders. silent: no answer, and the owner is asked; pairing: they get a code for the ' +
    'owner; closed: refused; open: answered as guests.',
);

export const strangeCallNames = (section: string, names: readonly string[]): Problems =>
  strangeItems(
    `${section}.groupNames`,
    names,
    isCallName,
    (name) => t`"${name}" is not a name: it has no letter or digit`,
    t`Use plain words; * matches any letters of a word.`,
  );

// The result of a check of settings: problems with path and remedy, or none.

export type Problems = readonly ConfigProblem[];

export const unless = (isFine: boolean, path: string, problem: string, remedy: string): Problems =>
  isFine ? [] : [{ path, problem, remedy }];

/** One problem for each invalid item of a list. */
export const strangeItems = <Item>(
  path: string,
  items: readonly Item[],
  isFine: (item: Item) => boolean,
  problemOf: (item: Item) => string,
  remedy: string,
): Problems =>
  items.flatMap((item, index) => unless(isFine(item), `${path}.${index}`, problemOf(item), remedy));

/** An address that is set leads to a server. */
export const unlessWebAddress = (path: string, url: string, example: string): Problems =>
  unless(
    url === '' || isWebAddress(url),
    path,
    t`"${url}" is not an http or https address`,
    t`Use an address such as ${example}.`,
  );

export const isWebAddress = (url: string) => /^https?:$/.test(URL.parse(url)?.protocol ?? '');

/** The address of the store. */
export const databaseProblems = (store: {
  readonly engine: string;
  readonly url: string;
  readonly poolUrl?: string;
}): Problems => {
  if (store.engine !== 'postgres') return [];
  const isAddress = (url: string) => /^postgres(?:ql)?:$/.test(URL.parse(url)?.protocol ?? '');
  const { url, poolUrl = '' } = store;
  return [
    ...unless(
      isAddress(url),
      'store.url',
      t`the engine postgres needs the address of a database`,
      t`Set it to postgres://user:password@host:5432/database, best as { "env": "DATABASE_URL" }.`,
    ),
    ...unless(
      poolUrl === '' || isAddress(poolUrl),
      'store.poolUrl',
      t`this is not the address of a database`,
      t`Set it to postgres://user:password@host:6432/database, the address of the pooler.`,
    ),
    ...Object.entries({ url, poolUrl }).flatMap(([name, address]) =>
      unless(
        !namesSeveral(address),
        `store.${name}`,
        t`this names several servers`,
        t`Name one address that always leads to the primary: of a proxy, or one that moves with it.`,
      ),
    ),
  ];
};

function namesSeveral(address: string): boolean {
  const { hostname = '', searchParams } = URL.parse(address) ?? {};
  return `${hostname}${searchParams?.get('host') ?? ''}`.includes(',');
}

/** The folder that several processes share. */
export const storageProblems = (path: string, engine: string): Problems => [
  ...unless(
    path === '' || engine === 'postgres',
    'storage.path',
    t`several processes need the engine postgres`,
    t`Set store.engine to postgres, or remove storage.`,
  ),
  ...unless(
    path === '' || path.startsWith('/'),
    'storage.path',
    t`"${path}" is no absolute path`,
    t`Set it to where the shared volume is mounted, e.g. /srv/nanobot.`,
  ),
];

/** The bucket of received and sent files. */
export const bucketProblems = (media: {
  readonly kind: string;
  readonly bucket: string;
  readonly prefix: string;
  readonly endpoint: string;
}): Problems => {
  if (media.kind !== 's3') return [];
  const { bucket, prefix, endpoint } = media;
  return [
    ...unless(
      BUCKET_NAME.test(bucket),
      'storage.media.bucket',
      bucket === '' ? t`the kind s3 needs a bucket` : t`"${bucket}" is not the name of a bucket`,
      t`Set it to the name of a bucket that exists: small letters, digits, dots and hyphens.`,
    ),
    ...unless(
      prefix === '' || PREFIX.test(prefix),
      'storage.media.prefix',
      t`"${prefix}" has other characters, or a slash at its beginning or end`,
      t`Use letters, digits, dots, hyphens and underscores, with single slashes between, e.g. nanobot/media.`,
    ),
    ...unless(
      endpoint === '' || isWebAddress(endpoint),
      'storage.media.endpoint',
      t`"${endpoint}" is no address`,
      t`Set it to https://host, the address of the S3 service, or remove it for AWS.`,
    ),
  ];
};

const BUCKET_NAME = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^[\w.-]+(?:\/[\w.-]+)*$/;

/** What messages do that arrive during a turn. */
export const QUEUE_MODES = ['steer', 'followup', 'collect', 'interrupt'] as const;

export type QueueMode = (typeof QUEUE_MODES)[number];

/** How the turns of a conversation share their work among models. */
export const AGENT_MODES = ['inline', 'delegated', 'trio', 'supervisor'] as const;

export type AgentMode = (typeof AGENT_MODES)[number];
