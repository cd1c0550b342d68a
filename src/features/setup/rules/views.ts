// What the HTTP API answers about the setup; the page has its types from here.

import { z } from 'zod';

const shownModel = z.object({
  name: z.string().describe('With its prefix.'),
  isDemo: z.boolean().describe('The built-in demo answers: no model is connected.'),
  problem: z.string().exactOptional().describe('Why it cannot answer, for people.'),
});
export const modelChoices = z.object({
  current: shownModel,
  found: z
    .array(
      z.object({
        model: z.string().describe('With its prefix.'),
        label: z.string().describe('The provider or the server.'),
        keyVariable: z
          .string()
          .exactOptional()
          .describe('The environment variable with its key; absent for a server on this machine.'),
      }),
    )
    .describe(
      'Can be used at once: servers that answer on this machine, and keys in the environment.',
    ),
  vendors: z
    .array(
      z.object({
        vendor: z.string(),
        label: z.string(),
        defaultModel: z.string(),
        hasKey: z.boolean().describe('A key is configured.'),
      }),
    )
    .describe('Providers with a key.'),
});
export const connectedModel = z.object({
  model: z.string(),
  latencyMs: z.number().describe('Of the test request.'),
});
export const listedModels = z.object({
  models: z.array(z.string()).describe('Empty if the server does not answer or lists none.'),
});

const codeSteps = [
  z.object({ kind: z.literal('progress'), text: z.string() }),
  z.object({
    kind: z.literal('show_qr'),
    qr: z.string().describe('The text of the code.'),
    image: z.string().describe('The code, an SVG as a data: URL.'),
    expiresAt: z.number().describe('Epoch milliseconds.'),
  }),
  z.object({
    kind: z.literal('show_code'),
    code: z.string().describe('To type on the phone.'),
    phoneNumber: z.string(),
  }),
] as const;

/** One step of linking an account by its owner's phone; the last is done or failed. */
export const linkEvent = z.discriminatedUnion('kind', [
  ...codeSteps,
  z.object({ kind: z.literal('done'), account: z.string() }),
  z.object({ kind: z.literal('failed'), reason: z.string(), remedy: z.string() }),
]);

/** What a step of the setup tells the page, in order. */
export const setupEvent = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('question'),
    id: z.string().describe('For the answer.'),
    form: z.enum(['text', 'secret', 'choice']),
    message: z.string(),
    initial: z.string(),
    isOptional: z.boolean(),
    choices: z.array(
      z.object({ value: z.string(), label: z.string(), hint: z.string().exactOptional() }),
    ),
  }),
  z.object({ kind: z.literal('withdrawn'), id: z.string().describe('Needs no answer any more.') }),
  z.object({ kind: z.literal('note'), text: z.string(), isWarning: z.boolean() }),
  z.object({ kind: z.literal('working'), text: z.string() }),
  z.object({ kind: z.literal('worked'), text: z.string() }),
  z.object({
    kind: z.literal('link'),
    text: z.string(),
    address: z.string().describe('A link, or a text to send.'),
    image: z.string().exactOptional().describe('Its QR code, an SVG as a data: URL.'),
  }),
  z.object({ kind: z.literal('login'), step: z.discriminatedUnion('kind', [...codeSteps]) }),
  z.object({ kind: z.literal('failed'), problem: z.string() }),
  z.object({ kind: z.literal('done'), text: z.string() }),
]);

const shownChannel = z.object({
  name: z.string().describe('email@work is a further account.'),
  label: z.string(),
  state: z
    .enum(['off', 'starting', 'running', 'elsewhere', 'degraded', 'stopped'])
    .describe('elsewhere: another process of the gateway runs it.'),
  account: z.string().exactOptional().describe('Connected as.'),
  reason: z.string().exactOptional(),
  remedy: z.string().exactOptional(),
  waiting: z.string().exactOptional().describe('What a limit holds back, and why.'),
  canLogIn: z.boolean().describe('A person’s phone can link it.'),
  canSetUp: z.boolean().describe('A step of the setup is for it.'),
});
export const setupState = z.object({
  model: shownModel,
  channels: z.array(shownChannel),
  voice: z.object({
    listening: z.string().exactOptional().describe('Who transcribes; absent: nobody.'),
    speaking: z.string().exactOptional().describe('Who speaks answers; absent: nobody.'),
  }),
  search: z.object({
    engines: z.array(z.string()).describe('Search engines that can be used, in their order.'),
  }),
});

export type LinkEvent = z.output<typeof linkEvent>;
export type SetupEvent = z.output<typeof setupEvent>;
export type SetupState = z.output<typeof setupState>;
export type ModelChoices = z.output<typeof modelChoices>;
export type ConnectedModel = z.output<typeof connectedModel>;
export type ListedModels = z.output<typeof listedModels>;
