// Counters and histograms in the text format of Prometheus (exposition format 0.0.4). Our own, because
// the client library takes more memory than everything it would count; see prometheus.ts.

export type Labels = Readonly<Record<string, string>>;

type Described = { readonly name: string; readonly help: string };

export class CounterSeries {
  readonly #described: Described;
  readonly #values = new Map<string, number>();

  constructor(described: Described) {
    this.#described = described;
  }

  add(labels: Labels, value = 1): void {
    const key = labelText(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + value);
  }

  lines(): readonly string[] {
    const { name } = this.#described;
    const values = [...this.#values].map(([labels, value]) => `${name}{${labels}} ${value}`);
    return [...headOf(this.#described, 'counter'), ...values];
  }
}

type Distribution = { readonly buckets: number[]; sum: number; count: number };

export class HistogramSeries {
  readonly #described: Described;
  readonly #bounds: readonly number[];
  readonly #values = new Map<string, Distribution>();

  /** `bounds`: ascending. */
  constructor(described: Described, bounds: readonly number[]) {
    this.#described = described;
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number): void {
    const key = labelText(labels);
    const found = this.#values.get(key) ?? { buckets: this.#bounds.map(() => 0), sum: 0, count: 0 };
    this.#values.set(key, found);
    found.sum += value;
    found.count += 1;
    const place = this.#bounds.findIndex((bound) => value <= bound);
    if (place >= 0) found.buckets[place] = (found.buckets[place] ?? 0) + 1;
  }

  lines(): readonly string[] {
    const values = [...this.#values].flatMap(([labels, found]) => this.#linesOf(labels, found));
    return [...headOf(this.#described, 'histogram'), ...values];
  }

  #linesOf(labels: string, { buckets, sum, count }: Distribution): readonly string[] {
    const { name } = this.#described;
    let below = 0;
    const bounded = this.#bounds.map((bound, place) => {
      below += buckets[place] ?? 0;
      return `${name}_bucket{${labels},le="${bound}"} ${below}`;
    });
    return [
      ...bounded,
      `${name}_bucket{${labels},le="+Inf"} ${count}`,
      `${name}_sum{${labels}} ${sum}`,
      `${name}_count{${labels}} ${count}`,
    ];
  }
}

export function gaugeLines(
  described: Described,
  values: readonly (readonly [Labels, number])[],
): readonly string[] {
  const lines = values.map(([labels, value]) => {
    return `${described.name}{${labelText(labels)}} ${value}`;
  });
  return [...headOf(described, 'gauge'), ...lines];
}

const headOf = ({ name, help }: Described, type: string) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} ${type}`,
];

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function labelText(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (char) => ESCAPES[char] ?? '')}"`)
    .join(',');
}
