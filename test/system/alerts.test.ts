// Of the packed program: the alert rules, the dashboard and the objectives ask Prometheus for series that a gateway has.
// Each is looked for on the page of one that answered, failed, could not deliver and has a budget. promtool, where it is
// installed, fires the rules.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { blocksOf, PAGES, ROOT } from '../docs/pages.ts';
import { callTools, fail, say } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const WAIT = { timeout: 30_000, interval: 20 };
const execute = promisify(execFile);
const hasPromtool = await execute('promtool', ['--version']).then(
  () => true,
  () => false,
);

type Sample = { readonly name: string; readonly labels: Readonly<Record<string, string>> };
type Asked = { readonly where: string; readonly query: string; readonly texts: string };

/** Added by Prometheus to every series of a gateway. */
const TARGET = { job: 'nanobot', instance: 'home:18790' };
const UP: Sample = { name: 'up', labels: TARGET };

function samplesOf(page: string): readonly Sample[] {
  const lines = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return [
    UP,
    ...lines.map((line) => {
      const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
      const own = Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value]));
      return { name, labels: { ...own, ...TARGET } };
    }),
  ];
}

const MATCHES: Readonly<Record<string, (value: string, wanted: string) => boolean>> = {
  '=': (value, wanted) => value === wanted,
  '!=': (value, wanted) => value !== wanted,
  '=~': (value, wanted) => new RegExp(`^(?:${wanted})$`).test(value),
  '!~': (value, wanted) => !new RegExp(`^(?:${wanted})$`).test(value),
};

/** What in a query has no series on the page: selectors, and labels that are grouped by or shown. */
function missing({ where, query, texts }: Asked, samples: readonly Sample[]): readonly string[] {
  const all = query.replaceAll('$instance', '.*');
  const selectors = [
    ...all.matchAll(/\b(up|(?:nanobot|process|nodejs)_\w+)\s*(?:\{([^}]*)\})?/g),
  ].map(([selector, name, matchers = '']) => {
    const wanted = [...matchers.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)];
    const found = samples.filter(
      (sample) =>
        sample.name === name &&
        wanted.every(([, label = '', how = '', value = '']) => {
          const own = sample.labels[label];
          return own !== undefined && MATCHES[how]?.(own, value) === true;
        }),
    );
    return { selector, found };
  });
  const labels = selectors.flatMap(({ found }) => found.flatMap((one) => Object.keys(one.labels)));
  const grouped = [...all.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, by = '']) => by.split(/, */));
  const shown = [...texts.matchAll(/\$labels\.(\w+)|\{\{(\w+)\}\}/g)].map(
    ([, ofAlert, ofLegend]) => ofAlert ?? ofLegend ?? '',
  );
  if (selectors.length === 0) return [`${where}: no series in ${query}`];
  return [
    ...selectors.filter(({ found }) => found.length === 0).map(({ selector }) => selector),
    ...[...grouped, ...shown].filter((label) => !labels.includes(label)),
  ].map((name) => `${where}: ${name}`);
}

const deployed = (name: string) => readFile(join(ROOT, 'deploy', name), 'utf8');

async function rules(): Promise<readonly Asked[]> {
  const { groups } = parse(await deployed('prometheus-alerts.yml'));
  type Rule = { readonly alert: string; readonly expr: string; readonly annotations: object };
  const all: readonly Rule[] = groups.flatMap((group: { rules: readonly Rule[] }) => group.rules);
  return all.map(({ alert, expr, annotations }) => {
    return { where: alert, query: expr, texts: JSON.stringify(annotations) };
  });
}

async function panels(): Promise<readonly Asked[]> {
  type Target = { readonly expr: string; readonly legendFormat?: string };
  type Panel = { readonly title: string; readonly targets: readonly Target[] };
  const all: readonly Panel[] = JSON.parse(await deployed('grafana-dashboard.json')).panels;
  return all.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat = '' }) => {
      return { where: title, query: expr, texts: legendFormat };
    }),
  );
}

const objectives = (): readonly Asked[] =>
  PAGES.flatMap((page) =>
    blocksOf(page, 'promql').map((query) => ({ where: page.path, query, texts: '' })),
  );

let samples: readonly Sample[] = [];

beforeAll(async () => {
  await using world = await startTelegramWorld({
    pair: { [OWNER]: 'owner' },
    config: {
      limits: { budget: { totalTokensPerDay: 1_000_000 } },
      backup: { to: '/not/needed', every: 'day' },
    },
  });
  const { telegram, model, gateway } = world;
  model.script(
    callTools({ name: 'read_file', arguments: { path: 'list.txt' } }),
    say('First.'),
    fail(401),
    say('Third.'),
  );
  await world.asks(OWNER, 'the first', /First/);
  await world.asks(OWNER, 'the second', /key/);
  telegram.fail({
    fault: { kind: 'error', code: 400, description: 'Bad Request: content refused' },
    times: 1000,
    when: ({ payload }) => String(payload['text']).includes('Third'),
  });
  telegram.say(OWNER, 'the third');
  const scrape = async () =>
    (await fetch(`${gateway.address}/metrics`, { headers: gateway.credentials })).text();
  samples = await vi.waitUntil(async () => {
    const read = samplesOf(await scrape());
    return read.some(({ labels }) => labels['status'] === 'not_sent') && read;
  }, WAIT);
});

describe('every series that is asked for is one that a gateway has', () => {
  it('in the alert rules', async () => {
    const asked = await rules();
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.flatMap((one) => missing(one, samples))).toEqual([]);
  });

  it('in the dashboard', async () => {
    const asked = await panels();
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.flatMap((one) => missing(one, samples))).toEqual([]);
  });

  it('in the objectives', () => {
    expect(objectives().length).toBeGreaterThan(4);
    expect(objectives().flatMap((one) => missing(one, samples))).toEqual([]);
  });

  it('and what no gateway has is found', () => {
    const wrong = (query: string, texts = '') => missing({ where: 'x', query, texts }, samples);
    expect(wrong('nanobot_turn_count')).toEqual(['x: nanobot_turn_count']);
    expect(wrong('nanobot_channel_up{channel="telegram"}')).toHaveLength(1);
    expect(wrong('nanobot_queue_messages{state="lost"}')).toHaveLength(1);
    expect(wrong('sum by (who) (nanobot_channel_up)', '{{chat}}')).toEqual(['x: who', 'x: chat']);
  });
});

it.skipIf(!hasPromtool)('the rules fire when a person is needed, and only then', async () => {
  await execute('promtool', ['check', 'rules', join(ROOT, 'deploy/prometheus-alerts.yml')]);
  await execute('promtool', ['test', 'rules', join(ROOT, 'test/system/alerts.promtool.yml')]);
});
