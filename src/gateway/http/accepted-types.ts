import type { HttpHandler } from '../requests/http-handler.ts';

/**
 * Sorts the media types that a client accepts by their weights (RFC 9110, section 12.5.1). Yoga uses the first one that fits, and ignores
 * weights.
 */
export const withOrderedTypes: HttpHandler = (req, res, next) => {
  const { accept } = req.headers;
  if (accept?.includes('q=')) req.headers.accept = orderedTypes(accept);
  next(req, res);
};

export function orderedTypes(accept: string): string {
  const weighted = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => /^q=/i.test(parameter));
    const others = parameters.filter((parameter) => parameter !== weight);
    return { range: [type, ...others].join(';'), weight: weight === undefined ? 1 : Number(weight.slice(2)) };
  });
  const wanted = weighted.filter(({ weight }) => !(weight <= 0));
  // The sort is stable for equal weights.
  return wanted
    .toSorted((a, b) => (b.weight || 0) - (a.weight || 0))
    .map(({ range }) => range)
    .join(', ');
}
