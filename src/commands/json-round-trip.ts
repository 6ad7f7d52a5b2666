/** Describes the first part of a value that a JSON round trip would change; undefined if JSON keeps the whole value. */
export function jsonRoundTripChange(value: unknown, path = ''): string | undefined {
  const here = path === '' ? 'at its top' : `at '${path}'`;
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : `half of a surrogate pair ${here}`;
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? undefined
        : `${Object.is(value, -0) ? '-0' : value} ${here}`;
    case 'object':
      return value === null ? undefined : changedObject(value, path, here);
    case 'bigint':
    case 'symbol':
    case 'undefined':
    case 'function':
      return `${typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`} ${here}`;
  }
}

function changedObject(value: object, path: string, here: string): string | undefined {
  if (Array.isArray(value)) {
    // By index: iteration by `entries` would skip a hole, which reads as undefined.
    for (let index = 0; index < value.length; index++) {
      const changed = jsonRoundTripChange(value[index], `${path}[${index}]`);
      if (changed) return changed;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `a ${value.constructor?.name ?? 'class'} ${here}`;
  if ('toJSON' in value) return `a toJSON ${here}`;
  for (const [name, part] of Object.entries(value)) {
    // JSON omits an undefined member, and reading the missing member returns undefined again.
    const changed = part === undefined ? undefined : jsonRoundTripChange(part, path === '' ? name : `${path}.${name}`);
    if (changed) return changed;
  }
  return undefined;
}
