// The Helm chart, rendered by Go's template engine and checked against the schemas of Kubernetes. The plain
// manifests in deploy/kubernetes are what it renders with its default values: `vitest run -u` writes them.

import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse as render } from '@evertdespiegeleer/go-template';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, PersistentVolumeClaim, Service } from 'kubernetes-models/v1';
import { expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const CHART = join(DEPLOY, 'helm/nanobot');
const MODELS = {
  ...{ ConfigMap, Deployment, HorizontalPodAutoscaler, PersistentVolumeClaim },
  ...{ PodDisruptionBudget, Service },
};
type Manifest = {
  readonly kind: keyof typeof MODELS;
  readonly metadata: { readonly name: string };
};
type Validated = new (data: never) => { validate(): void };

const values = () => parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));

/** As `helm template nanobot` does. */
async function manifests(changed: object = {}): Promise<string> {
  const folder = join(CHART, 'templates');
  const given = { Values: { ...values(), ...changed }, Release: { Name: 'nanobot' } };
  const parts = readdirSync(folder)
    .toSorted()
    .map((name) => render(readFileSync(join(folder, name), 'utf8'), given));
  const texts = (await Promise.all(parts)).map((text) => text.trim()).filter((text) => text !== '');
  return `${texts.map((text) => text.replace(/^---\n/, '')).join('\n---\n')}\n`;
}

function checked(text: string): readonly Manifest[] {
  const all = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  for (const one of all) {
    const Model: Validated = MODELS[one.kind];
    new Model(one as never).validate();
  }
  return all;
}

it('renders manifests that Kubernetes accepts, those of deploy/kubernetes by default', async () => {
  const text = await manifests();
  const kinds = checked(text).map(({ kind }) => kind);
  expect(kinds).toEqual([
    ...['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Deployment', 'PodDisruptionBudget'],
    ...['Service', 'PersistentVolumeClaim'],
  ]);
  await expect(text).toMatchFileSnapshot(join(DEPLOY, 'kubernetes/nanobot.yaml'));
});

it('scales the workers by processor time and by the queue where that is switched on', async () => {
  const autoscaling = { enabled: true, max: 8, cpu: 70, queue: 20 };
  const all = checked(await manifests({ autoscaling, storage: { existingClaim: 'files' } }));
  expect(all.map(({ kind }) => kind)).not.toContain('PersistentVolumeClaim');
  const scaler = all.find(({ kind }) => kind === 'HorizontalPodAutoscaler');
  expect(scaler).toMatchObject({ spec: { minReplicas: 2, maxReplicas: 8 } });
  expect(JSON.stringify(scaler)).toContain('"averageValue":"20"');
  const workers = all.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'nanobot-workers',
  );
  expect(JSON.stringify(workers)).toContain('"claimName":"files"');
  expect(JSON.stringify(workers)).not.toContain('"replicas"');
});

it('refuses a manifest that Kubernetes would refuse', async () => {
  const text = await manifests({ gracePeriod: '"soon"' });
  expect(() => checked(text)).toThrow(/terminationGracePeriodSeconds/);
});

const SECRETS = {
  DATABASE_URL: 'postgres://nanobot:secret@127.0.0.1:1/nanobot',
  NANOBOT_GATEWAY_TOKEN: 'a-token-of-more-than-thirty-two-characters',
};

async function accepts(config: string, env: Readonly<Record<string, string>>): Promise<void> {
  await using home = await temporaryHome();
  await writeFile(join(home.path, 'config.json'), config, { mode: 0o600 });
  const { code, stderr } = await runNanobot(['config', 'validate'], { home: home.path, env });
  expect({ code, stderr }).toMatchObject({ code: 0 });
}

it('has a configuration that the program accepts', () => accepts(values().config, SECRETS));

it('has a Compose profile whose processes the program accepts', async () => {
  const text = readFileSync(join(DEPLOY, '../docker-compose.yml'), 'utf8');
  const { services } = parse(text, { merge: true });
  const inProfile = Object.entries<{ profiles?: readonly string[]; command?: readonly string[] }>(
    services,
  ).filter(([, { profiles }]) => profiles?.includes('postgres'));
  expect(inProfile.map(([name]) => name)).toEqual(['channels', 'workers', 'database']);
  expect(services.channels.command).toContain('channels');
  expect(services.workers.command).toContain('workers');
  const { environment } = services.workers;
  await accepts('{}', { ...environment, ...SECRETS });
});
