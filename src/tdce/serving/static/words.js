// Words in the language that was chosen, from the catalogue of the server; numbers as its region writes them.
const COOKIE = "tdce-language"; // holds a language and nothing else
const YEAR = 31_536_000;

let said = { language: "en", locale: "en", languages: {}, messages: {} };
let plural = new Intl.PluralRules("en");

export function speak(found) {
  said = found;
  plural = new Intl.PluralRules(found.locale);
  document.documentElement.lang = found.language;
}

export const language = () => said.language;
export const languages = () => Object.entries(said.languages);

// For the next visit; the address has no language, so that whoever gets a link reads it in their own.
export function remember(name) {
  document.cookie = `${COOKIE}=${name}; path=/; max-age=${YEAR}; samesite=strict`;
  const here = new URL(location.href);
  if (!here.searchParams.has("lang")) return;
  here.searchParams.delete("lang");
  history.replaceState(history.state, "", here);
}

// A message with values in its places; its form is that of `count`.
export function t(key, values = {}) {
  return rich(key, values).join("");
}

// The same as parts, for values that are elements.
export function rich(key, values = {}) {
  const known = said.messages[key] ?? key;
  const message = typeof known === "string" ? known : known[plural.select(values.count)] ?? known.other;
  return message.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? (typeof values[part] === "number" ? number(values[part]) : values[part]) : part));
}

export const quoted = (text) => t("quoted", { text: String(text) });
export const number = (value, options = { maximumFractionDigits: 10 }) => new Intl.NumberFormat(said.locale, options).format(value);
export const decimals = (value, digits = 2) => number(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const whole = (value) => number(value, { maximumFractionDigits: 0 });
export const locale = () => said.locale;
