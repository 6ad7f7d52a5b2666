import type { Projection } from '../../src/index.ts';

/** The same read model as its next version, in another store. */
export function nextIn<P extends Projection>(store: string, projection: P): P {
  const { name, version } = projection;
  const next = version + 1;
  return Object.freeze({
    ...projection,
    ...{ version: next, id: `${name}@${next}`, tableName: `${name}_v${next}`, store },
  });
}
