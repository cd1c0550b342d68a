// The whole program as a child process between the WhatsApp test server and a scripted model: a home
// with WhatsApp on, and its account linked as a person does it, through the gateway's HTTP API.

import type { LinkEvent } from '../../src/features/setup/rules/views.ts';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from './gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from './llm-server.ts';
import type { Phone, WhatsAppServer } from './whatsapp-server/contract.ts';
import { startWhatsAppServer } from './whatsapp-server/server.ts';
import { trustVariables } from './whatsapp-server/trust.ts';

const LOGIN_TIMEOUT_MS = 60_000;

type WhatsAppInput = NonNullable<NonNullable<ConfigInput['channels']>['whatsapp']>;

export interface WhatsAppWorld extends AsyncDisposable {
  readonly server: WhatsAppServer;
  readonly model: LlmServer;
  readonly home: TestHome;
  readonly phone: Phone;
  /** The process of now. */
  readonly gateway: GatewayProcess;
  /** Changes the WhatsApp part of the configuration; counts from the next start. */
  configure(whatsapp: WhatsAppInput): Promise<void>;
  start(): Promise<GatewayProcess>;
  /** Links the phone by QR and waits until the linked device asked for its messages. */
  link(): Promise<void>;
  kill(): Promise<void>;
}

/** @param others further channels */
export async function startWhatsAppWorld(
  whatsapp: WhatsAppInput = {},
  others: Omit<NonNullable<ConfigInput['channels']>, 'whatsapp'> = {},
): Promise<WhatsAppWorld> {
  const stack = new AsyncDisposableStack();
  const server = stack.use(await startWhatsAppServer());
  const model = stack.use(await startLlmServer({ respond: echo }));
  const phone = await server.phone();
  const configOf = (extra: WhatsAppInput): ConfigInput => ({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'whatsapp-test-key', apiBase: model.openaiBase } },
    channels: {
      ...others,
      whatsapp: {
        enabled: true,
        socketUrl: server.url,
        allowFrom: ['*'],
        pacing: { chatPerMinute: 1000, accountPerMinute: 1000, minGapMs: 0, maxGapMs: 0 },
        ...extra,
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 50 },
    limits: { messages: { perMinute: 0, perDay: 0 } },
  });
  const home = stack.use(await makeTestHome(configOf(whatsapp)));
  const start = () => home.start(trustVariables(server));
  let gateway = await start();

  return {
    server,
    model,
    home,
    phone,
    get gateway() {
      return gateway;
    },
    configure: (extra) => home.writeConfig({ ...configOf({ ...whatsapp, ...extra }) }),
    async start() {
      gateway = await start();
      return gateway;
    },
    async link() {
      const steps = await linkByQr(gateway, phone);
      const last = steps.at(-1);
      if (last?.kind !== 'done') throw new Error(`not linked: ${JSON.stringify(last)}`);
      await phone.online();
    },
    kill: () => gateway.kill(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The steps of a login by the first QR code that is shown. */
export async function linkByQr(
  gateway: GatewayProcess,
  phone: Phone,
): Promise<readonly LinkEvent[]> {
  const steps: LinkEvent[] = [];
  let isScanned = false;
  for await (const step of loginSteps(gateway, {})) {
    steps.push(step);
    if (step.kind !== 'show_qr' || isScanned) continue;
    isScanned = true;
    await phone.scan(step.qr);
  }
  return steps;
}

/** The steps of a login as the gateway's API sends them. */
export async function* loginSteps(
  gateway: Pick<GatewayProcess, 'address' | 'credentials'>,
  body: { readonly phoneNumber?: string },
  signal: AbortSignal = AbortSignal.timeout(LOGIN_TIMEOUT_MS),
): AsyncGenerator<LinkEvent, void, void> {
  const response = await fetch(`${gateway.address}/api/v1/setup/channels/whatsapp/login`, {
    method: 'POST',
    headers: { ...gateway.credentials, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok || response.body === null) {
    throw new Error(`login refused: ${response.status} ${await response.text()}`);
  }
  let rest = '';
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    rest += part;
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data !== undefined) yield JSON.parse(data);
    }
  }
}
