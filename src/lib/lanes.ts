// A serial lane per key: tasks of one key run one after the other, tasks of different keys side by
// side. A lane that is empty costs nothing.

export interface Lanes {
  /** Runs the task when all earlier tasks of the key are over; a failure does not stop the lane. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Lanes with a task running or waiting. */
  readonly size: number;
}

export function createLanes(): Lanes {
  const tails = new Map<string, Promise<unknown>>();
  return {
    get size() {
      return tails.size;
    },
    run(key, task) {
      const before = tails.get(key) ?? Promise.resolve();
      const result = before.then(task, task);
      const tail = result.then(ignore, ignore).then(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      tails.set(key, tail);
      return result;
    },
  };
}

function ignore() {}
