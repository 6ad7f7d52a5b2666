/** The first difference between two JSON values, in a sentence; undefined if they are equal. */
export function difference(shown: unknown, right: unknown, path = ''): string | undefined {
  if (Object.is(shown, right)) return undefined;
  if (Array.isArray(shown) && Array.isArray(right) && shown.length === right.length)
    return firstOf(shown.map((_, index) => difference(shown[index], right[index], `${path}[${index}]`)));
  if (isObject(shown) && isObject(right)) {
    const names = new Set([...Object.keys(shown), ...Object.keys(right)]);
    return firstOf([...names].map((name) => difference(shown[name], right[name], `${path}.${name}`)));
  }
  return `${path || 'the response'} is ${text(shown)}, expected ${text(right)}`;
}

function firstOf(differences: readonly (string | undefined)[]): string | undefined {
  return differences.find((one) => one !== undefined);
}

function isObject(value: unknown): value is Readonly<{ [name: string]: unknown }> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 300);
}
