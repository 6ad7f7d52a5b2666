/** The first part of a value that would not come back from JSON as it is, in words; undefined where all would. */
export function changedByJson(value: unknown, path = ''): string | undefined {
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
    // By index, so that a hole is found as what it reads as.
    for (let index = 0; index < value.length; index++) {
      const changed = changedByJson(value[index], `${path}[${index}]`);
      if (changed) return changed;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `a ${value.constructor?.name ?? 'class'} ${here}`;
  if ('toJSON' in value) return `a toJSON ${here}`;
  for (const [name, part] of Object.entries(value)) {
    // Left out by JSON, and read as undefined all the same.
    const changed = part === undefined ? undefined : changedByJson(part, path === '' ? name : `${path}.${name}`);
    if (changed) return changed;
  }
  return undefined;
}
